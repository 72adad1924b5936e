#include "deploy/tools/play/actions.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/records/csv.h"
#include "common/tasks/load_task.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/tools/maps/run_policies.h"

namespace datacom::tools {
namespace {

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

// Names of the action columns, in order.
absl::StatusOr<std::vector<std::string>> ActionColumns(const Csv& csv, const TaskSpec& spec, const std::string& path) {
  std::vector<std::vector<std::string>> namings(2);
  for (int i = 0; i < spec.action_dim; ++i) {
    namings[0].push_back(absl::StrCat("action", i));
    namings[1].push_back(absl::StrCat("a", i));
  }
  if (spec.action_dim == 1) namings.push_back({"action"});
  if (spec.action_dim == 2) namings.push_back({"a_v", "a_w"});
  std::vector<std::string> tried;
  for (const std::vector<std::string>& names : namings) {
    if (std::all_of(names.begin(), names.end(), [&](const std::string& name) { return csv.has(name); })) return names;
    tried.push_back(absl::StrJoin(names, ","));
  }
  return Invalid(absl::StrCat(path, ": no action columns for task ", spec.name,
                              "; one of these sets is needed: ", absl::StrJoin(tried, " | ")));
}

}  // namespace

absl::StatusOr<std::vector<std::vector<double>>> ReadActions(const std::string& path, const TaskSpec& spec) {
  ASSIGN_OR_RETURN(const Csv csv, Csv::Read(path, Csv::Author::kPerson));
  ASSIGN_OR_RETURN(const std::vector<std::string> columns, ActionColumns(csv, spec, path));
  std::vector<std::vector<double>> actions;
  for (size_t row = 0; row < csv.rows(); ++row) {
    const auto empty = [&](const std::string& column) { return csv.Text(row, column).empty(); };
    if (csv.Text(row, "step") == "0" || std::all_of(columns.begin(), columns.end(), empty)) continue;
    std::vector<double> action;
    for (const std::string& column : columns) {
      action.push_back(csv.Number(row, column));
      if (!std::isfinite(action.back())) return csv.Wrong(row, column, "finite number");
    }
    actions.push_back(std::move(action));
  }
  return actions;
}

absl::StatusOr<std::map<std::string, double>> ParseInit(const std::string& text) {
  std::map<std::string, double> init;
  if (text.empty()) return init;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    double value = 0;
    if (pair.size() != 2 || pair[0].empty() || !absl::SimpleAtod(pair[1], &value) || !std::isfinite(value)) {
      return Invalid(absl::StrCat("--init: \"", part, "\" is not key=number"));
    }
    init[pair[0]] = value;
  }
  return init;
}

absl::StatusOr<NamedTask> FindTask(const std::string& task, const std::vector<std::string>& set) {
  v1::Experiment experiment;
  experiment.set_task(task);
  RETURN_IF_ERROR(LoadTaskOf("", experiment.mutable_task(), experiment.mutable_task_options()));
  RETURN_IF_ERROR(ApplyTaskOptions(set, &experiment));
  return NamedTask{experiment.task(), experiment.task_options()};
}

absl::StatusOr<std::unique_ptr<Task>> MakeTaskWith(const std::string& name, const std::vector<std::string>& set) {
  ASSIGN_OR_RETURN(const NamedTask named, FindTask(name, set));
  absl::StatusOr<std::unique_ptr<Task>> task = MakeTask(named.name, named.options);
  if (absl::IsNotFound(task.status())) return Invalid(std::string(task.status().message()));
  return task;
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
