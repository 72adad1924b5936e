// `rollout`: plays recorded actions, or an episode of an untrained policy, in a task and prints every step.
// Thread-safe; blocks while it plays.
#ifndef DATACOM_DEPLOY_TOOLS_PLAY_ROLLOUT_COMMAND_H_
#define DATACOM_DEPLOY_TOOLS_PLAY_ROLLOUT_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace datacom::tools {

struct RolloutCommand {
  std::string task;
  std::string actions;  // CSV; action columns: action0.. | action | a0.. | a_v,a_w; rows without an action are skipped
  std::string policy;   // instead of actions: a name for MakeUntrainedPolicy
  std::optional<uint64_t> seed;  // seed of the reset and of random actions; absent: always the same
  std::string init;              // "x=-1,theta=0.1"; empty = the task's own reset
  std::vector<std::string> set;  // "task_options.horizon=500"
  bool csv = false;              // comma-separated, full precision; else aligned columns
};

// Prints step,action0..,obs0..,reward,cost,absorbing. Row 0 is the state after the reset; its action and reward are
// empty. Recorded actions continue after an absorbing state; a policy's episode ends there or at the horizon.
// INVALID_ARGUMENT (NOT_FOUND for a file), naming what cannot be used, before anything is printed; INTERNAL for an
// invalid simulator step.
absl::Status RunRolloutCommand(const RolloutCommand& command, std::ostream* out);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_PLAY_ROLLOUT_COMMAND_H_
// SPDX-License-Identifier: Apache-2.0
