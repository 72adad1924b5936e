#include "actor/actor_setup.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom::actor {
namespace {

constexpr uint32_t kMaxBatch = 64;  // a larger batch is not faster, and every task takes memory

}  // namespace

absl::StatusOr<Rollout::Parts> MakeParts(const v1::Experiment& experiment) {
  const AlgorithmInfo* algorithm = FindAlgorithm(experiment.algorithm());
  if (algorithm == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("algorithm \"", experiment.algorithm(), "\" does not exist"));
  }
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(experiment.task(), experiment.task_options()));
  Rollout::Parts parts;
  parts.run_seed = experiment.run().seed();
  for (const v1::Member& member : experiment.members()) parts.member_seeds.push_back(member.seed());
  parts.lockstep = experiment.run().lockstep();
  parts.max_policy_lag = experiment.schedule().max_policy_lag();
  ASSIGN_OR_RETURN(parts.schema, ActingRuleSchema(algorithm->acting_rule, model.spec));
  if (experiment.has_demonstrations()) {
    const v1::Demonstrations& settings = experiment.demonstrations();
    ASSIGN_OR_RETURN(const ScriptedPolicy* controller, FindScriptedPolicy(model, settings.controller()));
    parts.demonstrations = {controller->act, settings.share(), settings.until_update()};
  }
  parts.make_task = [task = experiment.task(), options = experiment.task_options()] { return MakeTask(task, options); };
  parts.make_rule = [model, rule = algorithm->acting_rule](
                        const Snapshot& snapshot, int max_batch) -> absl::StatusOr<std::unique_ptr<ActingRule>> {
    if (snapshot.task != model.spec.name || snapshot.acting_rule != rule) {
      return absl::FailedPreconditionError(absl::StrCat("it is for task ", snapshot.task, " and rule ",
                                                        snapshot.acting_rule, ", the experiment has ", model.spec.name,
                                                        " and ", rule));
    }
    return MakeActingRule(snapshot, model, max_batch);
  };
  return parts;
}

absl::StatusOr<std::unique_ptr<EpisodePlayer>> MakeEpisodePlayer(const v1::Experiment& experiment,
                                                                 const Snapshot& snapshot, uint32_t batch) {
  if (snapshot.task != experiment.task()) {
    return absl::FailedPreconditionError(absl::StrCat("snapshot of member ", snapshot.member, " is for task ",
                                                      snapshot.task, ", not ", experiment.task()));
  }
  batch = std::clamp(batch, 1u, kMaxBatch);
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(experiment.task(), experiment.task_options()));
  absl::StatusOr<std::unique_ptr<ActingRule>> rule = MakeActingRule(snapshot, model, static_cast<int>(batch));
  if (!rule.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("snapshot of member ", snapshot.member, " at update ",
                                                      snapshot.version.update, ": ", rule.status().message()));
  }
  return MakeEpisodePlayer(experiment, *std::move(rule), batch);
}

absl::StatusOr<std::unique_ptr<EpisodePlayer>> MakeEpisodePlayer(const v1::Experiment& experiment,
                                                                 std::unique_ptr<ActingRule> rule, uint32_t batch) {
  std::vector<std::unique_ptr<Task>> tasks;
  for (uint32_t i = 0; i < std::clamp(batch, 1u, kMaxBatch); ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<Task> task, MakeTask(experiment.task(), experiment.task_options()));
    tasks.push_back(std::move(task));
  }
  return std::make_unique<EpisodePlayer>(std::move(tasks), std::move(rule), DiscountOfReturns(experiment));
}

}  // namespace datacom::actor
// SPDX-License-Identifier: Apache-2.0
