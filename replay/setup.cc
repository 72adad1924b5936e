#include "replay/setup.h"

#include "common/acting/acting_rule.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/tasks/task.h"

namespace datacom::replay {

absl::StatusOr<v1::Experiment> ReadExperiment(const std::string& path) {
  ASSIGN_OR_RETURN(const v1::Experiment loaded, LoadExperiment(path, ExperimentFolder()));
  const v1::Experiment experiment = ResolveExperiment(loaded);
  RETURN_IF_ERROR(ValidateExperiment(experiment, TaskNames(), AlgorithmNames()));
  return experiment;
}

absl::StatusOr<RowSchema> SchemaOf(const v1::Experiment& resolved) {
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(resolved.task(), resolved.task_options()));
  return ActingRuleSchema(FindAlgorithm(resolved.algorithm())->acting_rule, model.spec);
}

absl::StatusOr<Options> OptionsOf(const v1::Experiment& resolved) {
  const AlgorithmInfo& algorithm = *FindAlgorithm(resolved.algorithm());
  ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(resolved.task(), resolved.task_options()));
  Options options;
  options.task = resolved.task();
  options.algorithm = resolved.algorithm();
  options.experiment_text = PrintExperiment(resolved);
  for (int i = 0; i < resolved.members_size(); ++i) {
    const v1::Hyper hyper = MemberHyper(resolved, i);
    options.members.push_back({.seed = resolved.members(i).seed(),
                               .episode_rows = algorithm.learns_delta && hyper.delta_mode() != "fixed",
                               .delta_warmup = DeltaWarmup(resolved, i, model.spec.horizon)});
  }
  options.limits.schedule.env_steps = resolved.run().env_steps();
  options.limits.schedule.min_size = resolved.replay().min_size();
  options.limits.schedule.updates_per_step = resolved.schedule().updates_per_step();
  options.limits.tolerance = resolved.schedule().tolerance_steps();
  options.limits.max_policy_lag = resolved.schedule().max_policy_lag();
  options.limits.lockstep = resolved.run().lockstep();
  const ReplayLayout layout = ReplayLayoutOf(resolved, /*row_bytes=*/0);  // the schema has the size of a row
  options.capacity = layout.capacity;
  options.failure_capacity = layout.failure_capacity;
  options.slack = layout.slack;
  options.batch = resolved.learner().batch_size();
  options.failure_batch = resolved.learner().failure_batch_size();
  options.new_rows = algorithm.new_rows;
  options.discount = DiscountOfReturns(resolved);
  options.run_seed = resolved.run().seed();
  options.sync = resolved.replay().sync();
  return options;
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
