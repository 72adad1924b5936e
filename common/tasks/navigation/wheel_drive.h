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
  explicit WheelDrive(const DriveInertia& inertia) {
    // Kinetic energy m/2 (v - offset omega)^2 + I_c/2 omega^2 with I_c about the centre of mass.
    const double coupling = -inertia.mass * inertia.left_offset;
    const double determinant = inertia.mass * inertia.yaw_inertia - coupling * coupling;
    inverse_[0][0] = inertia.yaw_inertia / determinant;
    inverse_[0][1] = inverse_[1][0] = -coupling / determinant;
    inverse_[1][1] = inertia.mass / determinant;
  }

  // The change of `current` within one control step under `command`, which is not limited. Projected Gauss-Seidel
  // sweeps solve for the two wheel impulses, within +-torque / radius * dt, that bring both contact points to their
  // commanded speeds.
  Motion Change(const Motion& current, const Motion& command) const {
    constexpr double kImpulseLimit = kWheelTorque / kWheelRadius * kControlDt;  // N s
    constexpr int kSweeps = 8;                                                  // each divides the error by about 300
    constexpr double kSides[2] = {-kHalfTrack, kHalfTrack};                     // left wheel, right wheel
    double impulse[2] = {0, 0};
    Motion change;
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      for (int wheel = 0; wheel < 2; ++wheel) {
        const double side = kSides[wheel];  // the contact point moves at v + side omega
        const double error =
            (command.v + side * command.omega) - (current.v + change.v) - side * (current.omega + change.omega);
        const double response[2] = {inverse_[0][0] + side * inverse_[0][1], inverse_[1][0] + side * inverse_[1][1]};
        const double unlimited = impulse[wheel] + error / (response[0] + side * response[1]);
        const double step = ClampTo(unlimited, kImpulseLimit) - impulse[wheel];
        impulse[wheel] += step;
        change.v += response[0] * step;
        change.omega += response[1] * step;
      }
    }
    return change;
  }

 private:
  double inverse_[2][2];  // inverse inertia of (v, omega)
};

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_WHEEL_DRIVE_H_
// SPDX-License-Identifier: Apache-2.0
