// `task check`: loads a task file, plays random actions and prints what a training would meet: the specification, the
// range of each number, violated costs, the conditioning of G, how well f and G predict the simulator (model_fit.h),
// and the speed compared with bare MuJoCo. Blocks while it plays.
#ifndef DATACOM_DEPLOY_TOOLS_PLAY_CHECK_TASK_H_
#define DATACOM_DEPLOY_TOOLS_PLAY_CHECK_TASK_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"

namespace datacom::tools {

struct CheckTaskCommand {
  std::string file;  // task.textproto
  uint32_t steps = 5000;
  uint64_t seed = 0;
};

// INVALID_ARGUMENT naming file, line and field of a wrong task; INTERNAL after the print if a number is not finite,
// MuJoCo reports a step as invalid, or every episode ends in its first step.
absl::Status RunCheckTaskCommand(const CheckTaskCommand& command, std::ostream* out);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_PLAY_CHECK_TASK_H_
// SPDX-License-Identifier: Apache-2.0
