#include "deploy/tools/play/commands.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/tasks/task.h"
#include "deploy/tools/play/actions.h"
#include "deploy/tools/play/step_table.h"

namespace datacom::tools {
namespace {

absl::StatusOr<ActionSource> PolicyActions(const std::string& name, const RolloutCommand& command, uint64_t seed) {
  ASSIGN_OR_RETURN(const NamedTask task, FindTask(command.task, command.set));
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(task.name, task.options));
  ASSIGN_OR_RETURN(UntrainedPolicy policy, MakeUntrainedPolicy(name, model));
  const std::shared_ptr<ActingRule> rule = std::move(policy.rule);
  return ActionSource([rule, spec = model.spec, seed](uint64_t step, const double* observation, double* action) {
    if (step >= static_cast<uint64_t>(spec.horizon)) return false;
    const std::vector<float> seen(observation, observation + spec.obs_dim);
    std::vector<float> noise(rule->noise_dim()), chosen(spec.action_dim);
    FillNormal(StreamKey("rollout.noise", {seed, step}), noise.data(), rule->noise_dim());
    const float previous_cost = 0;
    rule->Act(1, {seen.data(), noise.data(), &previous_cost}, chosen.data(), {});
    std::copy(chosen.begin(), chosen.end(), action);
    return true;
  });
}

}  // namespace

absl::Status RunRolloutCommand(const RolloutCommand& command, std::ostream* out) {
  if (command.actions.empty() == command.policy.empty()) {
    return absl::InvalidArgumentError("rollout needs either --actions FILE or --policy NAME");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Task> task, MakeTaskWith(command.task, command.set));
  const TaskSpec& spec = task->spec();
  const bool recorded = command.policy.empty();
  ASSIGN_OR_RETURN(const ActionSource source, recorded
                                                  ? RecordedActions(command.actions, spec)
                                                  : PolicyActions(command.policy, command, command.seed.value_or(0)));
  ASSIGN_OR_RETURN(const auto init, ParseInit(command.init));
  std::vector<double> observation(spec.obs_dim), action(spec.action_dim);
  RandomStream stream(command.seed.has_value() ? StreamKey("rollout.reset", {*command.seed})
                                               : StreamKey("rollout.reset", {}));
  RETURN_IF_ERROR(task->ResetTo(init, &stream, observation.data()));

  StepTable table(spec, command.csv, out, command.width);
  table.Start(observation.data(), task->Cost());
  StepResult result;
  for (uint64_t step = 0; source(step, observation.data(), action.data()); ++step) {
    result = task->Step(action.data(), observation.data());
    if (!result.valid) {
      RETURN_IF_ERROR(task->status());
      return absl::InternalError(
          absl::StrCat("step ", step + 1, ": the simulator reports it as invalid (", spec.name, ")"));
    }
    table.Step(static_cast<uint32_t>(step + 1), action.data(), observation.data(), result);
    if (result.ends() && !recorded) break;
  }
  return absl::OkStatus();
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
