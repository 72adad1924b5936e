// The 22 numbers TIAGo++ sees (environments.md 3.6). A pure function; thread-safe; nothing blocks or allocates.
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

// Target x, y; TIAGo++ x, y, cos and sin of its yaw, velocity x, y, yaw rate; the same seven of Fetch; the action; the
// hand's x, y and velocity x, y. observation: [kObservations].
inline void Observe(const Situation& situation, double* observation) {
  double* out = observation;
  *out++ = situation.target.x;
  *out++ = situation.target.y;
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

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_OBSERVATION_H_
