// `eval`: plays a run's policy again and prints the paper's metrics (algorithms.md 18; design: interface.md).
#ifndef DATACOM_ACTOR_EVAL_COMMAND_H_
#define DATACOM_ACTOR_EVAL_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace datacom {

struct EvalCommand {
  std::string run_dir;
  std::optional<uint32_t> member;    // absent: every member
  std::string epoch = "last";        // number, or last
  std::optional<uint32_t> episodes;  // absent: the run's own number
  std::optional<uint64_t> seed;      // in place of the run's seed; absent: the very episodes the run was evaluated with
  std::vector<std::string> set;      // "task_options.horizon=500", in place of the run's own
  bool csv = false;                  // one row an episode, 17 digits; else the task options and one line a member
};

// NOT_FOUND or INVALID_ARGUMENT naming the folder, epoch or member that is not there; CANCELLED when the process is
// stopped.
absl::Status RunEvalCommand(const EvalCommand& command, std::ostream* out);

}  // namespace datacom

#endif  // DATACOM_ACTOR_EVAL_COMMAND_H_
