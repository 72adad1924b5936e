// `eval`: plays the policy of a run, or an untrained one, and prints the paper's metrics
// (learner/algorithms/README.md 15).
#ifndef DATACOM_ACTOR_PLAY_EVAL_COMMAND_H_
#define DATACOM_ACTOR_PLAY_EVAL_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace datacom {

struct EvalCommand {
  std::string what;                  // a run folder; with `policy` also a task's name
  std::string policy;                // an untrained one (MakeUntrainedPolicy); empty: the run's
  std::optional<uint32_t> member;    // of a run's policy; absent: every member
  std::optional<std::string> epoch;  // of a run's policy: number, last or best; absent: last
  std::optional<uint32_t> episodes;  // absent: the run's own number; of a task the schema's
  std::optional<uint64_t> seed;      // in place of the run's seed; absent: the very episodes the run was evaluated with
  std::vector<std::string> set;      // "task_options.horizon=500", in place of the run's own
  bool csv = false;                  // one row an episode, 17 digits; else the task options and one line a member
};

// An untrained policy stands as member 0 with seed 0 at epoch 0, whatever it is evaluated on. NOT_FOUND or
// INVALID_ARGUMENT naming the folder, task, policy, epoch or member that is not there; CANCELLED when the process is
// stopped.
absl::Status RunEvalCommand(const EvalCommand& command, std::ostream* out);

}  // namespace datacom

#endif  // DATACOM_ACTOR_PLAY_EVAL_COMMAND_H_
