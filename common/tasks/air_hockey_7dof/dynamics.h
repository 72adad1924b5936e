// Air hockey with seven joints without its simulator: the task's static facts and its control-affine model
// (docs/air_hockey.md 14.6).
#ifndef DATACOM_COMMON_TASKS_AIR_HOCKEY_7DOF_DYNAMICS_H_
#define DATACOM_COMMON_TASKS_AIR_HOCKEY_7DOF_DYNAMICS_H_

#include "absl/status/statusor.h"
#include "common/tasks/air_hockey_7dof/arm.h"
#include "common/tasks/hockey_rules.h"
#include "common/tasks/task.h"

namespace datacom::air_hockey_7dof {

// Where the entries of an observation begin, after the puck's (docs/air_hockey.md 14.3; robot frame).
using air_hockey::kJointPosition;           // 7
inline constexpr int kJointVelocity = 13;   // 7
inline constexpr int kMalletPosition = 20;  // x, y relative to the puck, height above the plane
inline constexpr int kMalletVelocity = 23;  // x, y relative to the puck, vertical
inline constexpr int kObservation = 26;

// The mallet's entries, from the others.
void ObserveMallet(double* observation);

// INVALID_ARGUMENT for options that the task does not have.
absl::StatusOr<TaskModel> MakeModel(const v1::TaskOptions& options);

}  // namespace datacom::air_hockey_7dof

#endif  // DATACOM_COMMON_TASKS_AIR_HOCKEY_7DOF_DYNAMICS_H_
// SPDX-License-Identifier: Apache-2.0
