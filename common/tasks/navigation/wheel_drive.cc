#include "common/tasks/navigation/wheel_drive.h"

namespace datacom::navigation {
namespace {

constexpr double kImpulseLimit = kWheelTorque / kWheelRadius * kControlDt;  // N s
constexpr int kSweeps = 8;                                                  // each divides the error by about 300
constexpr double kSides[2] = {-kHalfTrack, kHalfTrack};                     // left wheel, right wheel

}  // namespace

WheelDrive::WheelDrive(const DriveInertia& inertia) {
  // Kinetic energy m/2 (v - offset omega)^2 + I_c/2 omega^2 with I_c about the centre of mass.
  const double coupling = -inertia.mass * inertia.left_offset;
  const double determinant = inertia.mass * inertia.yaw_inertia - coupling * coupling;
  inverse_[0][0] = inertia.yaw_inertia / determinant;
  inverse_[0][1] = inverse_[1][0] = -coupling / determinant;
  inverse_[1][1] = inertia.mass / determinant;
}

Motion WheelDrive::Change(const Motion& current, const Motion& command) const {
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

}  // namespace datacom::navigation
// SPDX-License-Identifier: Apache-2.0
