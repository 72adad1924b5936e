// CartPole without its simulator: the task's static facts and the nominal control-affine model
// (docs/safe_map.md 1).
//
// q = [x, theta, x_dot, theta_dot] with theta = atan2(sin, cos) in (-pi, pi]; no uncontrollable state. The model has no
// damping and no joint limit, and its input gain is 0.95 of the motor's. This mismatch is part of the published method.
#ifndef DATACOM_COMMON_TASKS_CARTPOLE_DYNAMICS_H_
#define DATACOM_COMMON_TASKS_CARTPOLE_DYNAMICS_H_

#include "absl/status/statusor.h"
#include "common/safety/control_affine.h"
#include "common/tasks/task.h"

namespace datacom::cartpole {

inline constexpr double kCartMass = 0.1;                       // kg
inline constexpr double kPoleMass = 0.1;                       // kg
inline constexpr double kHalfLength = 0.5;                     // m, hinge to the pole's centre of mass
inline constexpr double kGravity = 9.81;                       // m/s^2
inline constexpr double kMotorGear = 2.0;                      // N per unit of action, in the simulator
inline constexpr double kInputGain = 0.95 * kMotorGear;        // N per unit of action, in the nominal model
inline constexpr double kPoleInertia = 0.0094245927672955976;  // kg m^2, transverse, about the centre of mass

// Immutable; thread-safe; Evaluate neither blocks nor allocates. obs: [x, sin, cos, x_dot, theta_dot].
class Dynamics : public ControlAffine {
 public:
  ControlAffineDims dims() const override { return {5, 1, 4, 0}; }
  void Evaluate(const double* obs, const ControlAffineOut& out) const override;
};

absl::StatusOr<TaskModel> MakeModel(const v1::TaskOptions& options);

}  // namespace datacom::cartpole

#endif  // DATACOM_COMMON_TASKS_CARTPOLE_DYNAMICS_H_
// SPDX-License-Identifier: Apache-2.0
