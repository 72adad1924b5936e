#include "actor/rollout_command.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "actor/actions.h"
#include "actor/step_table.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/tasks/task.h"

namespace datacom {

absl::Status RunRolloutCommand(const RolloutCommand& command, std::ostream* out) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Task> task, MakeTaskWith(command.task, command.set));
  const TaskSpec& spec = task->spec();
  ASSIGN_OR_RETURN(const auto actions, ReadActions(command.actions, spec));
  ASSIGN_OR_RETURN(const auto init, ParseInit(command.init));
  std::vector<double> observation(spec.obs_dim);
  RandomStream stream(StreamKey("rollout.reset", {}));
  RETURN_IF_ERROR(task->ResetTo(init, &stream, observation.data()));

  StepTable table(spec, command.csv, out);
  table.Start(observation.data(), task->Cost());
  for (size_t step = 0; step < actions.size(); ++step) {
    const StepResult result = task->Step(actions[step].data(), observation.data());
    if (!result.valid) {
      return absl::InternalError(
          absl::StrCat("step ", step + 1, ": the simulator called it invalid (", spec.name, ")"));
    }
    table.Step(static_cast<uint32_t>(step + 1), actions[step].data(), observation.data(), result);
  }
  return absl::OkStatus();
}

}  // namespace datacom
