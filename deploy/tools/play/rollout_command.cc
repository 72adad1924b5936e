#include "deploy/tools/play/commands.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/tasks/task.h"
#include "deploy/tools/play/actions.h"
#include "deploy/tools/play/step_table.h"

namespace datacom::tools {

absl::Status RunRolloutCommand(const RolloutCommand& command, std::ostream* out) {
  if (command.actions.empty() == command.policy.empty()) {
    return absl::InvalidArgumentError("rollout needs either --actions FILE or --policy NAME");
  }
  ASSIGN_OR_RETURN(const NamedTask named, FindTask(command.task, command.set));
  ASSIGN_OR_RETURN(const std::unique_ptr<Task> task, MakeTask(named.name, named.options));
  ActionSource source;
  if (command.policy.empty()) {
    ASSIGN_OR_RETURN(source, RecordedActions(command.actions, task->spec()));
  } else {
    ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(named.name, named.options));
    ASSIGN_OR_RETURN(UntrainedPolicy policy, MakeUntrainedPolicy(command.policy, model));
    source = PolicyActions(std::move(policy), model.spec, command.seed.value_or(0));
  }
  ASSIGN_OR_RETURN(const auto init, ParseInit(command.init));
  RandomStream stream(command.seed.has_value() ? StreamKey("rollout.reset", {*command.seed})
                                               : StreamKey("rollout.reset", {}));
  std::optional<StepTable> table;  // made when the start is known: before, nothing is printed
  const auto print = [&](const actor::EpisodeState& state, const double* action) -> absl::Status {
    if (!state.reached.valid) {
      RETURN_IF_ERROR(task->status());
      return absl::InternalError(
          absl::StrCat("step ", state.step, ": the simulator reports it as invalid (", task->spec().name, ")"));
    }
    if (!table) table.emplace(task->spec(), command.csv, out, command.width);
    table->Add(state, action);
    return absl::OkStatus();
  };
  return PlayActions(source, init, /*stop_at_end=*/command.actions.empty(), &stream, print, task.get());
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
