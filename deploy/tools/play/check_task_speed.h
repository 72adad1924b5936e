// Measures how fast a task that is a text file steps, compared with bare MuJoCo. Blocks for seconds.
#ifndef DATACOM_DEPLOY_TOOLS_PLAY_CHECK_TASK_SPEED_H_
#define DATACOM_DEPLOY_TOOLS_PLAY_CHECK_TASK_SPEED_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/tasks/task.h"
#include "common/tasks/text/mujoco_compiled.h"

namespace datacom::tools {

// Seconds of this thread's processor time for one control step.
struct TaskSpeed {
  double task = 0;  // a step of the task, with signals, expressions, f and G
  double bare = 0;  // only mj_step, for the same actions from the same starts
};

// Measures both in turn, in short blocks, for up to `seconds` of processor time. `task` is one of `compiled`; `model`
// has its f and G.
absl::StatusOr<TaskSpeed> MeasureTaskSpeed(const text::CompiledTask& compiled, const TaskModel& model, uint64_t seed,
                                           double seconds, Task* task);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_PLAY_CHECK_TASK_SPEED_H_
// SPDX-License-Identifier: Apache-2.0
