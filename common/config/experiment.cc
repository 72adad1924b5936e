#include "common/config/experiment.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/output_file.h"
#include "common/base/shared_files.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/task_files.h"
#include "datacom/v1/python_task.pb.h"
#include "datacom/v1/task.pb.h"
#include "google/protobuf/extension_set.h"

namespace datacom {

absl::StatusOr<v1::Experiment> ParseExperiment(const std::string& text, const std::string& where) {
  google::protobuf::LinkExtensionReflection(v1::text_task);  // the text may have one
  google::protobuf::LinkExtensionReflection(v1::python_task);
  v1::Experiment experiment;
  RETURN_IF_ERROR(ParseTextproto(text, where, &experiment));
  return experiment;
}

absl::Status NotARunFolder(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path + "/experiment.textproto", error) && error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": cannot look into it: ", error.message()));
  }
  if (std::filesystem::exists(path + "/cuts", error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is not a run folder, but a copy of one; copy it back first: datacom copy ", path, " RUN_DIR"));
  }
  if (std::filesystem::exists(path + "/populations.txt", error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a run folder, but that of a sweep; name one of its runs, which ", path,
                     "/populations.txt lists"));
  }
  if (std::filesystem::exists(path + "/task.textproto", error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a run folder, but that of a task, ", path, "/task.textproto; name that, or a run"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is not a run folder: it has no experiment.textproto; name the --run-dir ",
                   "of a run, e.g. runs/cartpole-datacom-1"));
}

constexpr uint64_t kMostBytes = uint64_t{256} << 20;  // old experiments hold the files of their text task

absl::StatusOr<v1::Experiment> LoadExperiment(const std::string& name_or_path, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string path, FindTextproto("experiment", name_or_path, folder));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  ASSIGN_OR_RETURN(v1::Experiment experiment, ParseExperiment(text, path));
  RETURN_IF_ERROR(Annotate(CheckTitle("name", experiment.name()), path));
  if (experiment.task_options().HasExtension(v1::text_task)) {
    const std::string beside = std::filesystem::path(path).parent_path().string();
    RETURN_IF_ERROR(Annotate(AddTaskFiles(beside, experiment.mutable_task_options()), path));
  }
  return experiment;
}

std::string PrintExperiment(const v1::Experiment& experiment) {
  if (!experiment.task_options().HasExtension(v1::text_task)) return PrintTextproto(experiment);
  v1::Experiment printed = experiment;
  DropTaskFiles(printed.mutable_task_options());
  return PrintTextproto(printed);
}

absl::Status WriteExperiment(const std::string& path, const v1::Experiment& experiment) {
  ASSIGN_OR_RETURN(const std::string replaced, ReplacedFile(path));
  if (!replaced.empty()) {
    RETURN_IF_ERROR(WriteTaskFiles(std::filesystem::path(path).parent_path().string(), experiment.task_options()));
  }
  return WriteOutputFile(path, PrintExperiment(experiment));
}

absl::Status CheckNamesNoExperiment(const std::string& task) {
  const absl::StatusOr<v1::Experiment> experiment = LoadExperiment(task, ExperimentFolder());
  if (!experiment.ok() || experiment->task().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(task, " is an experiment; its task is ", experiment->task()));
}

std::string ExperimentFolder() {
  if (const char* folder = std::getenv("DATACOM_EXPERIMENTS")) return folder;
  return FindSharedFile("experiments", "deploy/experiments");
}

v1::Hyper MemberHyper(const v1::Experiment& resolved, int member) {
  v1::Hyper hyper = resolved.hyper();
  if (member < resolved.members_size()) hyper.MergeFrom(resolved.members(member).hyper());
  return hyper;
}

uint64_t DeltaWarmup(const v1::Hyper& hyper, uint64_t min_size, int horizon) {
  constexpr uint64_t kEpisodes = 20;
  if (DeltaModeOf(hyper) != DeltaMode::kPeak) return hyper.delta_warmup();
  return std::min(hyper.delta_warmup(), std::max(kEpisodes * static_cast<uint64_t>(horizon), min_size));
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
