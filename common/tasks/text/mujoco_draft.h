// Writes the first task.textproto for a MuJoCo model, for `datacom task new`: every joint, site, actuator and sensor of
// the model, with defaults to edit and comments that explain them. What is not of the model stands in
// draft.textproto.in. The text loads as it is. Pure; thread-safe; needs a model of CompileMujocoModel.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_DRAFT_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_DRAFT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mujoco/mujoco.h"

namespace datacom::text {

// `name`: of the task. `file`: of the model, relative to the folder of the task file. INVALID_ARGUMENT for a model
// without a joint, without an actuator (the message has lines to add to the model), or without one that a task can use.
// `named`: names that the model got in its copy (mujoco_copy.h), for a comment.
absl::StatusOr<std::string> DraftTask(const mjModel& model, const std::string& name, const std::string& file,
                                      const std::vector<std::string>& named = {});

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_DRAFT_H_
// SPDX-License-Identifier: Apache-2.0
