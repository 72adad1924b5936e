// The 22 numbers TIAGo++ sees (environments.md 3.6). Pure functions; thread-safe; nothing blocks or allocates.
#ifndef DATACOM_COMMON_TASKS_NAVIGATION_OBSERVATION_H_
#define DATACOM_COMMON_TASKS_NAVIGATION_OBSERVATION_H_

#include "common/tasks/navigation/fetch.h"
#include "common/tasks/navigation/planar.h"

namespace datacom::navigation {

inline constexpr int kObservations = 22;

struct Situation {
  PlanarState tiago, fetch;
  Point target;    // TIAGo++'s
  Motion action;   // just applied; none after a reset
  LinkPoint hand;  // Fetch's, one control step old
  Point hand_velocity;
};

// Whose axes the target is observed in (proto TaskOptions.observation): the room's, or TIAGo++'s, whose x points ahead
// and whose y to its left. All else is in the room's axes.
enum class Frame { kWorld, kRobot };

// `point` as `robot` sees it: ahead, to its left.
inline Point SeenFrom(const PlanarState& robot, const Point& point) {
  const double cosine = std::cos(robot.yaw), sine = std::sin(robot.yaw);
  const double x = point.x - robot.x, y = point.y - robot.y;
  return {cosine * x + sine * y, cosine * y - sine * x};
}

// Target x, y; TIAGo++ x, y, cos and sin of its yaw, velocity x, y, yaw rate; the same seven of Fetch; the action; the
// hand's x, y and velocity x, y. observation: [kObservations].
inline void Observe(const Situation& situation, Frame frame, double* observation) {
  const Point target = frame == Frame::kRobot ? SeenFrom(situation.tiago, situation.target) : situation.target;
  double* out = observation;
  *out++ = target.x;
  *out++ = target.y;
  for (const PlanarState* robot : {&situation.tiago, &situation.fetch}) {
    *out++ = robot->x;
    *out++ = robot->y;
    *out++ = std::cos(robot->yaw);
    *out++ = std::sin(robot->yaw);
    *out++ = robot->vx;
    *out++ = robot->vy;
    *out++ = robot->yaw_rate;
  }
  *out++ = situation.action.v;
  *out++ = situation.action.omega;
  *out++ = situation.hand.x;
  *out++ = situation.hand.y;
  *out++ = situation.hand_velocity.x;
  *out++ = situation.hand_velocity.y;
}

// What the observation says of the situation: all of it, the target in TIAGo++'s axes.
struct Sight {
  Point target;  // ahead, left
  PlanarState tiago, fetch;
  Point hand;
};
inline Sight ReadSight(const double* observation, Frame frame) {
  const auto robot = [observation](int at) {
    const double* const seven = observation + at;
    return PlanarState{seven[0], seven[1], std::atan2(seven[3], seven[2]), seven[4], seven[5], seven[6]};
  };
  Sight sight;
  sight.tiago = robot(2);
  sight.fetch = robot(9);
  sight.hand = {observation[18], observation[19]};
  sight.target = {observation[0], observation[1]};
  if (frame == Frame::kWorld) sight.target = SeenFrom(sight.tiago, sight.target);
  return sight;
}

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_OBSERVATION_H_
