// Inverse dynamics of the arm without the puck: the joint torques for an acceleration, including the forces of the
// joint limits. Always of the nominal arm, even when the simulated one is scaled.
#ifndef DATACOM_COMMON_TASKS_AIR_HOCKEY_INVERSE_DYNAMICS_H_
#define DATACOM_COMMON_TASKS_AIR_HOCKEY_INVERSE_DYNAMICS_H_

#include <utility>

#include "absl/status/statusor.h"
#include "common/tasks/mujoco.h"

namespace datacom::air_hockey {

// Not thread-safe: owns an mjData; all instances share one model, compiled at the first Make. Torque allocates nothing;
// call it under a MujocoGuard.
class InverseDynamics {
 public:
  static absl::StatusOr<InverseDynamics> Make();

  // Arrays [3]: rad, rad/s, rad/s^2 -> N m.
  void Torque(const double* position, const double* velocity, const double* acceleration, double* torque);

 private:
  InverseDynamics(MujocoModel model, MujocoData data) : model_(std::move(model)), data_(std::move(data)) {}
  MujocoModel model_;
  MujocoData data_;
};

}  // namespace datacom::air_hockey

#endif  // DATACOM_COMMON_TASKS_AIR_HOCKEY_INVERSE_DYNAMICS_H_
// SPDX-License-Identifier: Apache-2.0
