#include "deploy/cli/load_task.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/acting/acting_rule.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/carried_task.h"
#include "common/config/experiment.h"
#include "common/tasks/python/identity.h"
#include "common/tasks/python/python_model.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/python_task.pb.h"
#include "datacom/v1/task_options.pb.h"
#include "deploy/cli/process.h"
#include "deploy/cli/verbs.h"

namespace datacom::cli {
namespace {

constexpr char kSuffix[] = ".textproto";

// The task of a file or environment, with its options.
absl::StatusOr<v1::TaskOptions> AskTool(const std::string& task, const std::string& folder,
                                        const std::string& without_model) {
  std::vector<std::string> words = {"load-task", task, "--folder", folder};
  if (absl::StartsWith(task, python::kPythonTask)) words.insert(words.end(), {"--without-model", without_model});
  const absl::StatusOr<std::string> output = ToolOutput(std::move(words));
  if (absl::IsInternal(output.status())) return Annotate(output.status(), task);
  RETURN_IF_ERROR(output.status());
  v1::TaskOptions loaded;
  if (loaded.ParseFromString(*output) && !CarriedTask(loaded).empty()) return loaded;
  return absl::InternalError(absl::StrCat(task, ": datacom-tools could not load it"));
}

}  // namespace

absl::Status CheckSameEnvironment(const v1::TaskOptions& options) {
  if (!options.HasExtension(v1::python_task)) return absl::OkStatus();
  const v1::PythonTask& run = options.GetExtension(v1::python_task);
  ASSIGN_OR_RETURN(const v1::TaskOptions now, AskTool(python::kPythonTask + run.environment(), "",
                                                      run.q() + run.x() > 0 ? "" : "the run has none"));
  return python::CheckSame(run, now.GetExtension(v1::python_task));
}

std::string WithoutModel(const std::string& algorithm, const TrainOptions& options) {
  const AlgorithmInfo* const info = FindAlgorithm(algorithm);
  const bool changes = std::any_of(options.overrides.begin(), options.overrides.end(), [](const std::string& one) {
    return absl::StartsWith(one, "algorithm") || absl::StartsWith(one, "pretrain");  // whose dataset may have it
  });
  if (info == nullptr || info->needs_dynamics || changes) return "";
  return absl::StrCat(info->name, " reads none");
}

absl::Status LoadTask(const std::string& experiment_file, v1::Experiment* experiment,
                      const std::string& without_model) {
  const std::string& task = experiment->task();
  if (!absl::EndsWith(task, kSuffix) && !absl::StartsWith(task, python::kPythonTask)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::TaskOptions loaded,
                   AskTool(task, std::filesystem::path(experiment_file).parent_path().string(), without_model));
  experiment->set_task(CarriedTask(loaded));
  experiment->mutable_task_options()->MergeFrom(loaded);
  return absl::OkStatus();
}

bool NamesTask(const TrainOptions& options) {
  return !options.algorithm.empty() || absl::StartsWith(options.experiment, python::kPythonTask);
}

absl::StatusOr<v1::Experiment> ExperimentOf(const TrainOptions& options) {
  if (const absl::Status status = CheckNamesNoExperiment(options.experiment); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(status.message(), ". Leave out --algorithm, or name the task with it"));
  }
  v1::Experiment experiment;
  experiment.set_task(options.experiment);
  RETURN_IF_ERROR(LoadTask("", &experiment, WithoutModel(options.algorithm, options)));
  for (const std::string& assignment : options.overrides) {
    if (absl::StartsWith(assignment, "task_options.")) RETURN_IF_ERROR(ApplyOverride(assignment, &experiment));
  }
  const absl::StatusOr<TaskModel> model = MakeTaskModel(experiment.task(), experiment.task_options());
  if (!model.ok()) return absl::InvalidArgumentError(model.status().message());
  const bool has_model = model->dynamics->dims().q > 0;
  experiment.set_algorithm(!options.algorithm.empty() ? options.algorithm : has_model ? "datacom" : "lag_sac");
  experiment.set_name(absl::StrCat(experiment.task(), "-", experiment.algorithm()));
  const AlgorithmInfo* const info = FindAlgorithm(experiment.algorithm());
  const auto reads = [info](const google::protobuf::Descriptor* of, const char* name) {
    return info != nullptr && ReadsSetting(*info, *of->FindFieldByName(name));
  };
  if (reads(v1::Hyper::descriptor(), "target_entropy")) {
    experiment.mutable_hyper()->set_target_entropy(-model->spec.action_dim);
  }
  if (reads(v1::Hyper::descriptor(), "delta_mode")) experiment.mutable_hyper()->set_delta_mode("peak");
  if (reads(v1::LearnerOptions::descriptor(), "normalise_observations")) {
    experiment.mutable_learner()->set_normalise_observations(true);
    experiment.mutable_network()->set_critic_layer_norm(true);  // the same algorithms read it
  }
  return experiment;
}

void LeaveOutModel(v1::Experiment* experiment) {
  const AlgorithmInfo* const info = FindAlgorithm(experiment->algorithm());
  if (!experiment->task_options().HasExtension(v1::text_task) || experiment->has_pretrain()) return;
  if (info == nullptr || info->needs_dynamics) return;
  v1::TaskOptions without = experiment->task_options();
  v1::ResolvedTask* const resolved = without.MutableExtension(v1::text_task)->mutable_resolved();
  if (!resolved->without_map().empty() || !resolved->drive().empty()) return;  // nothing to leave out
  resolved->set_without_map(absl::StrCat(info->name, " reads neither, so that its runs do not compute them"));
  const absl::StatusOr<TaskModel> model = MakeTaskModel(experiment->task(), without);
  if (!model.ok() || !CheckActingRuleTask(info->acting_rule, *model).ok()) return;
  *experiment->mutable_task_options() = std::move(without);
}

absl::StatusOr<std::string> ToolOutput(std::vector<std::string> words) {
  const std::string verb = words.front();
  words.insert(words.begin(), BinFolder() + "/datacom-tools");
  int code = 0;
  ASSIGN_OR_RETURN(std::string output, OutputOf(std::move(words), &code));
  if (code == kExitOk) return output;
  if (code == kExitUsage) return absl::InvalidArgumentError(output);
  return absl::InternalError(absl::StrCat("datacom-tools ", verb, " ended with ", code, ": ", output));
}

std::string ModelFitLine(const std::string& experiment_file) {
  const std::string line = ToolOutput({"model-fit", experiment_file}).value_or("");
  return std::string(absl::StripSuffix(line, "\n"));
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
