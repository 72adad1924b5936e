// Planar air hockey without its simulator: the task's static facts and the nominal control-affine model
// (docs/air_hockey.md 8). G = [0; I]: the model takes the normalised action as the acceleration, although the task
// multiplies it by the acceleration limits (6.3, 6.3, 8.4 rad/s^2). This mismatch is part of the published method.
#ifndef DATACOM_COMMON_TASKS_AIR_HOCKEY_DYNAMICS_H_
#define DATACOM_COMMON_TASKS_AIR_HOCKEY_DYNAMICS_H_

#include "absl/status/statusor.h"
#include "common/tasks/hockey_rules.h"
#include "common/tasks/task.h"

namespace datacom::air_hockey {

// Where the entries of an observation begin, after the puck's (docs/air_hockey.md 4; robot frame).
inline constexpr int kJointVelocity = 9;    // 3, filtered
inline constexpr int kMalletPosition = 12;  // x, y relative to the puck, 1 ms old
inline constexpr int kMalletVelocity = 14;  // x, y relative to the puck, MuJoCo's centre-of-mass velocity, 1 ms old
inline constexpr int kObservation = 16;

// INVALID_ARGUMENT for options that the task does not have.
absl::StatusOr<TaskModel> MakeModel(const v1::TaskOptions& options);

// A hand-written striker, as a baseline for learned policies: places the mallet behind the puck, on the line from the
// goal through the puck, and drives it along that line; brakes once the puck moves. observation: [kObservation];
// action: [kJoints], in [-1, 1]. Pure; thread-safe; allocates nothing.
void Strike(const double* observation, double* action);

}  // namespace datacom::air_hockey

#endif  // DATACOM_COMMON_TASKS_AIR_HOCKEY_DYNAMICS_H_
// SPDX-License-Identifier: Apache-2.0
