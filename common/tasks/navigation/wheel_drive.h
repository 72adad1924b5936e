// The two driven wheels of TIAGo++ (docs/navigation.md 1.2). Each follows its commanded speed with at
// most 6 N m: reaching 1 m/s takes 25 control steps, and a turn is delayed while both wheels push with full torque.
#ifndef DATACOM_COMMON_TASKS_NAVIGATION_WHEEL_DRIVE_H_
#define DATACOM_COMMON_TASKS_NAVIGATION_WHEEL_DRIVE_H_

#include "common/tasks/navigation/planar.h"

namespace datacom::navigation {

inline constexpr double kWheelRadius = 0.0985;  // m
inline constexpr double kHalfTrack = 0.2022;    // m, from the middle of the axle to a wheel
inline constexpr double kWheelTorque = 6.0;     // N m

// The inertia that the wheels move, relative to the middle of the axle.
struct DriveInertia {
  double mass = 0;         // kg, including the wheels' spin
  double left_offset = 0;  // m, of the centre of mass, to the left of the axle's middle
  double yaw_inertia = 0;  // kg m^2, about the vertical through the axle's middle
};

// Immutable; thread-safe; nothing blocks or allocates.
class WheelDrive {
 public:
  explicit WheelDrive(const DriveInertia& inertia);

  // The change of `current` within one control step under `command`, which is not limited. Projected Gauss-Seidel
  // sweeps solve for the two wheel impulses, within +-torque / radius * dt, that bring both contact points to their
  // commanded speeds.
  Motion Change(const Motion& current, const Motion& command) const;

 private:
  double inverse_[2][2];  // inverse inertia of (v, omega)
};

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_WHEEL_DRIVE_H_
// SPDX-License-Identifier: Apache-2.0
