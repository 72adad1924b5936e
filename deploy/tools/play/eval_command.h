// `eval`: plays the policy of a run, or an untrained one, and prints the paper's metrics
// (docs/algorithms.md 15). Thread-safe; blocks while it plays.
#ifndef DATACOM_DEPLOY_TOOLS_PLAY_EVAL_COMMAND_H_
#define DATACOM_DEPLOY_TOOLS_PLAY_EVAL_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace datacom::tools {

struct EvalCommand {
  std::string what;                  // a run folder; with `policy` also a task's name
  std::string policy;                // name of an untrained policy (MakeUntrainedPolicy); empty: the run's policy
  std::optional<uint32_t> member;    // for a run's policy: its member; absent: all members
  std::optional<std::string> epoch;  // for a run's policy: number, last or best; absent: last
  std::optional<uint32_t> episodes;  // absent: as many as in the run's evaluation; for a task the schema's default
  std::optional<uint64_t> seed;      // replaces the run's seed; absent: the same episodes as in the run's evaluation
  std::vector<std::string> set;      // "task_options.horizon=500", replaces the run's own
  bool csv = false;  // one row per episode, full precision; else the task options and one line per member
};

// An untrained policy is printed as member 0 with seed 0 at epoch 0. NOT_FOUND or INVALID_ARGUMENT, naming the missing
// folder, task, policy, epoch or member; CANCELLED when the process is stopped.
absl::Status RunEvalCommand(const EvalCommand& command, std::ostream* out);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_PLAY_EVAL_COMMAND_H_
// SPDX-License-Identifier: Apache-2.0
