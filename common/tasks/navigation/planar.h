// Motion in the plane, for both robots of the navigation task: metres, radians, seconds; yaw counter-clockwise.
#ifndef DATACOM_COMMON_TASKS_NAVIGATION_PLANAR_H_
#define DATACOM_COMMON_TASKS_NAVIGATION_PLANAR_H_

#include <algorithm>
#include <cmath>

#include "common/base/norm.h"

namespace datacom::navigation {

inline constexpr double kControlDt = 1.0 / 30;  // s, of a control step, which is one simulator step
inline constexpr double kGravity = 9.81;        // m/s^2
inline constexpr double kRoomX = 3.5;           // m, from the room's middle to the inner face of a wall
inline constexpr double kRoomY = 2.5;

struct Point {
  double x = 0, y = 0;
};

struct PlanarState {
  double x = 0, y = 0, yaw = 0;
  double vx = 0, vy = 0, yaw_rate = 0;  // in the world's axes
};

// Forward speed and turn rate.
struct Motion {
  double v = 0, omega = 0;
};

inline double Distance(const PlanarState& a, const Point& b) { return Norm(a.x - b.x, a.y - b.y); }

// The same direction in (-pi, pi].
inline double WrapAngle(double angle) {
  const double wrapped = std::remainder(angle, 2 * M_PI);
  return wrapped <= -M_PI ? wrapped + 2 * M_PI : wrapped;
}

// The angle from the robot's heading to the direction of `point`, in (-pi, pi].
inline double BearingError(const PlanarState& robot, const Point& point) {
  return WrapAngle(std::atan2(point.y - robot.y, point.x - robot.x) - robot.yaw);
}

inline double ClampTo(double value, double limit) { return std::clamp(value, -limit, limit); }

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_PLANAR_H_
// SPDX-License-Identifier: Apache-2.0
