#include "replay/run_experiment.h"

#include "common/acting/acting_rule.h"
#include "common/base/status.h"
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

}  // namespace datacom::replay
