#include "deploy/python/native/datacom_records.h"

#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/acting/acting_rule.h"
#include "common/base/output_file.h"
#include "common/base/plugins.h"
#include "common/base/status.h"
#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/config/task_files.h"
#include "common/records/dataset.h"
#include "common/tasks/python/python_model.h"
#include "common/tasks/task.h"
#include "common/transitions/check_columns.h"
#include "deploy/report/statistics.h"

namespace {

absl::StatusOr<std::string> Columns(const std::string& path) {
  RETURN_IF_ERROR(datacom::LoadPlugins({datacom::PluginPart::kSimulator}));
  ASSIGN_OR_RETURN(const datacom::v1::Experiment experiment, datacom::LoadExperiment(path, ""));
  ASSIGN_OR_RETURN(const datacom::TaskModel model,
                   datacom::MakeTaskModel(experiment.task(), experiment.task_options()));
  const datacom::AlgorithmInfo* const algorithm = datacom::FindAlgorithm(experiment.algorithm());
  if (algorithm == nullptr) return absl::NotFoundError(absl::StrCat("unknown algorithm ", experiment.algorithm()));
  ASSIGN_OR_RETURN(const datacom::RowSchema schema, datacom::ActingRuleSchema(algorithm->acting_rule, model.spec));
  std::string text = absl::StrCat("row ", schema.stored_row_bytes(), "\n");
  for (const datacom::Column& column : schema.stored()) {
    const char* const kind = column.type == datacom::ColumnType::kFloat32 ? " f" : " u";
    absl::StrAppend(&text, column.name, kind, datacom::SizeOf(column.type), " ", column.width, " ",
                    schema.offset(column.name), "\n");
  }
  return text;
}

// What is given of each column, one row after the other.
std::map<std::string, const void*> ValuesOf(const datacom_records_rows& rows) {
  return {{"observation", rows.observation},
          {"action", rows.action},
          {"reward", rows.reward},
          {"cost", rows.cost},
          {"next_observation", rows.next_observation},
          {"absorbing", rows.absorbing},
          {"last", rows.last}};
}

// The rows in the form of a ring's, row after row.
std::vector<char> Pack(const datacom_records_rows& rows, const datacom::RowSchema& schema, uint64_t* episodes) {
  const size_t bytes = schema.stored_row_bytes();
  std::vector<char> packed(rows.count * bytes, 0);
  const std::map<std::string, const void*> given = ValuesOf(rows);
  uint32_t episode = 0, step = 0;
  for (uint64_t i = 0; i < rows.count; ++i) {
    char* const row = packed.data() + i * bytes;
    for (const datacom::Column& column : schema.stored()) {
      const auto values = given.find(column.name);
      if (values == given.end()) continue;
      const char* const from = static_cast<const char*>(values->second) + i * column.bytes();
      std::memcpy(row + schema.offset(column.name), from, column.bytes());
    }
    std::memcpy(row + schema.offset("episode"), &episode, sizeof episode);
    std::memcpy(row + schema.offset("step"), &step, sizeof step);
    std::memcpy(row + schema.offset("sequence"), &i, sizeof i);
    ++step;
    if (rows.last[i] != 0) ++episode, step = 0;
  }
  *episodes = episode;
  return packed;
}

// Refuses values that no row may have, and actions that the task cannot execute: those of another unit, for example.
absl::Status CheckRows(const datacom_records_rows& rows, const datacom::RowSchema& schema,
                       const datacom::TaskSpec& spec) {
  const std::map<std::string, const void*> given = ValuesOf(rows);
  for (const datacom::Column& column : schema.stored()) {
    const auto values = given.find(column.name);
    if (values == given.end()) continue;
    RETURN_IF_ERROR(datacom::CheckColumn(column, static_cast<const char*>(values->second), rows.count));
  }
  constexpr double kRoom = 1e-3;  // of the range, for rounding
  for (uint64_t i = 0; i < rows.count; ++i) {
    for (int j = 0; j < rows.action_dim; ++j) {
      const double low = spec.action_low[j], high = spec.action_high[j], room = kRoom * (high - low);
      const double action = static_cast<double>(rows.action[i * rows.action_dim + j]);
      if (action >= low - room && action <= high + room) continue;
      return absl::InvalidArgumentError(absl::StrCat("row ", i, ": action ", j, " is ", action, ", the task has ", low,
                                                     " to ", high, ": actions must be in the task's units"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Write(const std::string& task, const std::string& options, const std::string& source,
                                  const datacom_records_rows& rows, const std::string& folder) {
  RETURN_IF_ERROR(datacom::LoadPlugins({datacom::PluginPart::kSimulator}));
  datacom::v1::DatasetManifest manifest;
  datacom::v1::Experiment& experiment = *manifest.mutable_experiment();
  experiment.set_task(task);
  experiment.set_algorithm("sac");  // whose rows have no further columns
  if (absl::StartsWith(task, datacom::python::kPythonTask))
    return absl::InvalidArgumentError(absl::StrCat(task, ": datasets are written for datacom's tasks and task files"));
  RETURN_IF_ERROR(datacom::ParseTextproto(options, "options", experiment.mutable_task_options()));
  RETURN_IF_ERROR(datacom::ValidateTaskOptions(experiment.task_options()));
  RETURN_IF_ERROR(datacom::LoadTaskOf("", experiment.mutable_task(), experiment.mutable_task_options()));
  ASSIGN_OR_RETURN(const datacom::TaskModel model,
                   datacom::MakeTaskModel(experiment.task(), experiment.task_options()));
  datacom::DropTaskFiles(experiment.mutable_task_options());
  const datacom::TaskSpec& spec = model.spec;
  const auto fits = [&](const char* what, int given, int wanted) {
    if (given == wanted) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(what, " of ", given, " numbers, those of ", task, " have ", wanted));
  };
  RETURN_IF_ERROR(fits("observations", rows.observation_dim, static_cast<int>(spec.obs_dim)));
  RETURN_IF_ERROR(fits("actions", rows.action_dim, static_cast<int>(spec.action_dim)));
  if (rows.count == 0) return absl::InvalidArgumentError("there are no rows");
  const std::string& rule = datacom::FindAlgorithm(experiment.algorithm())->acting_rule;
  ASSIGN_OR_RETURN(const datacom::RowSchema schema, datacom::ActingRuleSchema(rule, spec));
  RETURN_IF_ERROR(CheckRows(rows, schema, spec));
  manifest.set_run_id(source);
  datacom::v1::DatasetMember& member = *manifest.add_members();
  uint64_t episodes = 0;
  const std::vector<char> packed = Pack(rows, schema, &episodes);
  member.set_end_row(rows.count);
  member.set_episodes(episodes);
  std::vector<std::vector<const char*>> all(1);
  for (uint64_t i = 0; i < rows.count; ++i) all[0].push_back(packed.data() + i * schema.stored_row_bytes());
  RETURN_IF_ERROR(datacom::WriteDataset(folder, schema, all, &manifest));
  return "";
}

// The result of a function, or why it failed, in `text`. Returns 0, the number of the error's code, or 1 for an
// exception or if the text is too long.
template <class Call>
int Say(const Call& call, char* text, size_t text_bytes) {
  std::string said;
  int code = 1;
  try {
    const absl::StatusOr<std::string> result = call();
    said = result.ok() ? *result : std::string(result.status().message());
    code = result.ok() && said.size() >= text_bytes ? 1 : result.status().raw_code();
  } catch (const std::exception& error) {
    said = error.what();
  }
  std::snprintf(text, text_bytes, "%s", said.c_str());
  return code;
}

}  // namespace

int datacom_records_columns(const char* experiment, char* text, size_t text_bytes) {
  return Say([&] { return Columns(experiment); }, text, text_bytes);
}

int datacom_records_write_file(const char* file, const char* content, size_t bytes, char* text, size_t text_bytes) {
  return Say(
      [&]() -> absl::StatusOr<std::string> {
        RETURN_IF_ERROR(datacom::WriteOutputFile(file, {content, bytes}));
        return "";
      },
      text, text_bytes);
}

int datacom_records_write_dataset(const char* task, const char* options, const char* source,
                                  const datacom_records_rows* rows, const char* folder, char* text, size_t text_bytes) {
  return Say([&] { return Write(task, options, source, *rows, folder); }, text, text_bytes);
}

int datacom_records_interquartile_mean(const double* values, int count, double out[3]) {
  const datacom::report::InterquartileMean result =
      datacom::report::ComputeInterquartileMean(std::vector<double>(values, values + count));
  out[0] = result.mean, out[1] = result.low, out[2] = result.high;
  return result.count;
}

double datacom_records_student_t(double freedom, double level) {
  try {
    return datacom::report::StudentT(freedom, level);
  } catch (const std::exception&) {  // of Boost, where it has no value
    return std::numeric_limits<double>::quiet_NaN();
  }
}
// SPDX-License-Identifier: Apache-2.0
