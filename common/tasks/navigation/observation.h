// TIAGo++'s observation: 22 or 31 numbers (docs/navigation.md 4). Pure functions; thread-safe; nothing
// blocks or allocates.
#ifndef DATACOM_COMMON_TASKS_NAVIGATION_OBSERVATION_H_
#define DATACOM_COMMON_TASKS_NAVIGATION_OBSERVATION_H_

#include "common/tasks/navigation/fetch.h"
#include "common/tasks/navigation/planar.h"

namespace datacom::navigation {

struct Situation {
  PlanarState tiago, fetch;
  Point target;    // TIAGo++'s
  Motion action;   // just applied; zero after a reset
  LinkPoint hand;  // Fetch's, one control step old
  Point hand_velocity;
};

// The axes of the observation (proto TaskOptions.observation): the room's, or TIAGo++'s, with x ahead and y to its
// left. kRobot: the target in TIAGo++'s axes, the rest in the room's. kRobotAll: as kRobot, followed by TIAGo++'s speed
// ahead and the position and velocity of Fetch and of its hand in TIAGo++'s axes.
enum class Frame { kWorld, kRobot, kRobotAll };

inline int ObservationSize(Frame frame) { return frame == Frame::kRobotAll ? 31 : 22; }

// A vector in the room's axes -> in `robot`'s: ahead, to its left.
inline Point Turned(const PlanarState& robot, const Point& vector) {
  const double cosine = std::cos(robot.yaw), sine = std::sin(robot.yaw);
  return {cosine * vector.x + sine * vector.y, cosine * vector.y - sine * vector.x};
}

// The position of `point` in `robot`'s axes: ahead, to its left.
inline Point SeenFrom(const PlanarState& robot, const Point& point) {
  return Turned(robot, {point.x - robot.x, point.y - robot.y});
}

// Target x, y; TIAGo++ x, y, cos and sin of its yaw, velocity x, y, yaw rate; the same seven of Fetch; the action; the
// hand's x, y and velocity x, y. With kRobotAll nine more: TIAGo++'s speed ahead; for Fetch, then its hand: position
// ahead, left and velocity ahead, left (relative to the room, not to TIAGo++). observation: [ObservationSize(frame)].
inline void Observe(const Situation& situation, Frame frame, double* observation) {
  const Point target = frame == Frame::kWorld ? situation.target : SeenFrom(situation.tiago, situation.target);
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
  if (frame != Frame::kRobotAll) return;
  const PlanarState& tiago = situation.tiago;
  *out++ = Turned(tiago, {tiago.vx, tiago.vy}).x;
  for (const Point& point :
       {SeenFrom(tiago, {situation.fetch.x, situation.fetch.y}),
        Turned(tiago, {situation.fetch.vx, situation.fetch.vy}), SeenFrom(tiago, {situation.hand.x, situation.hand.y}),
        Turned(tiago, situation.hand_velocity)}) {
    *out++ = point.x;
    *out++ = point.y;
  }
}

// An observation decoded; the target in TIAGo++'s axes.
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
// SPDX-License-Identifier: Apache-2.0
