#include "replay/settings.h"

#include "common/acting/acting_rule.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/tasks/task.h"

namespace datacom::replay {

absl::StatusOr<v1::Experiment> ReadExperiment(const std::string& path) {
  ASSIGN_OR_RETURN(const v1::Experiment loaded, LoadExperiment(path, ExperimentFolder()));
  const v1::Experiment experiment = ResolveExperiment(loaded);
  RETURN_IF_ERROR(Annotate(ValidateExperiment(experiment, TaskNames(), AlgorithmNames()), path));
  return experiment;
}

absl::StatusOr<ReplaySetup> SetUp(const v1::Experiment& resolved) {
  const AlgorithmInfo& algorithm = *FindAlgorithm(resolved.algorithm());
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(resolved.task(), resolved.task_options()));
  ReplaySetup setup;
  ASSIGN_OR_RETURN(setup.schema, ActingRuleSchema(algorithm.acting_rule, model.spec));
  Options& options = setup.options;
  options.task = resolved.task();
  options.algorithm = resolved.algorithm();
  options.experiment_text = PrintExperiment(resolved);
  for (int i = 0; i < resolved.members_size(); ++i) {
    const v1::Hyper hyper = MemberHyper(resolved, i);
    options.members.push_back({.seed = resolved.members(i).seed(),
                               .episode_rows = algorithm.learns_delta && ReadsEpisodes(hyper),
                               .delta_warmup = DeltaWarmup(hyper, resolved.replay().min_size(), model.spec.horizon)});
  }
  options.limits.schedule = UpdatesOf(resolved);
  options.limits.tolerance = resolved.schedule().tolerance_steps();
  options.limits.max_policy_lag = resolved.schedule().max_policy_lag();
  options.limits.lockstep = resolved.run().lockstep();
  options.layout = ReplayLayoutOf(resolved, setup.schema.stored_row_bytes());
  options.batch = resolved.learner().batch_size();
  options.failure_batch = resolved.learner().failure_batch_size();
  options.new_rows = algorithm.new_rows;
  options.horizon = static_cast<uint32_t>(model.spec.horizon);
  options.discount = DiscountOfReturns(resolved);
  options.run_seed = resolved.run().seed();
  options.sync = resolved.replay().sync();
  return setup;
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
