#include "actor/rollout_command.h"

#include <cmath>
#include <iomanip>
#include <map>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "actor/csv.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom {
namespace {

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

// Which columns of the file are the action, in order.
absl::StatusOr<std::vector<int>> ActionColumns(const CsvTable& table, const TaskSpec& spec, const std::string& path) {
  std::vector<std::vector<std::string>> namings(2);
  for (int i = 0; i < spec.action_dim; ++i) {
    namings[0].push_back(absl::StrCat("action", i));
    namings[1].push_back(absl::StrCat("a", i));
  }
  if (spec.action_dim == 1) namings.push_back({"action"});
  if (spec.action_dim == 2) namings.push_back({"a_v", "a_w"});
  std::vector<std::string> tried;
  for (const std::vector<std::string>& names : namings) {
    std::vector<int> columns;
    for (const std::string& name : names) {
      if (table.Column(name) >= 0) columns.push_back(table.Column(name));
    }
    if (columns.size() == names.size()) return columns;
    tried.push_back(absl::StrJoin(names, ","));
  }
  return Invalid(absl::StrCat(path, ": no action columns for task ", spec.name,
                              "; one of these sets is needed: ", absl::StrJoin(tried, " | ")));
}

// [row][action_dim]; rows whose action cells are all empty are left out.
absl::StatusOr<std::vector<std::vector<double>>> ReadActions(const std::string& path, const TaskSpec& spec) {
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(path));
  ASSIGN_OR_RETURN(const std::vector<int> columns, ActionColumns(table, spec, path));
  std::vector<std::vector<double>> actions;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    std::vector<double> action;
    int empty = 0;
    for (const int column : columns) {
      const std::string& cell = table.rows[row][column];
      double value = 0;
      if (cell.empty()) {
        ++empty;
      } else if (!absl::SimpleAtod(cell, &value) || !std::isfinite(value)) {
        return Invalid(absl::StrCat(path, " row ", row + 1, ": ", table.header[column], " is \"", cell,
                                    "\", not a finite number"));
      }
      action.push_back(value);
    }
    if (empty == static_cast<int>(columns.size())) continue;
    if (empty > 0) return Invalid(absl::StrCat(path, " row ", row + 1, ": part of the action is empty"));
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

absl::StatusOr<std::unique_ptr<Task>> TaskOf(const RolloutCommand& command) {
  v1::Experiment experiment;
  experiment.set_task(command.task);
  for (const std::string& assignment : command.set) RETURN_IF_ERROR(ApplyOverride(assignment, &experiment));
  RETURN_IF_ERROR(ValidateTaskOptions(experiment.task_options()));
  absl::StatusOr<std::unique_ptr<Task>> task = MakeTask(experiment.task(), experiment.task_options());
  if (absl::IsNotFound(task.status())) return Invalid(std::string(task.status().message()));
  return task;
}

// Writes cells as a line: comma-separated, or aligned.
class LineWriter {
 public:
  LineWriter(std::ostream* out, bool csv) : out_(out), csv_(csv) {}
  void Write(const std::vector<std::string>& cells) const {
    if (csv_) {
      *out_ << absl::StrJoin(cells, ",") << '\n';
      return;
    }
    for (const std::string& cell : cells) *out_ << std::setw(13) << cell;
    *out_ << '\n';
  }
  std::string Number(double value) const { return csv_ ? Exact(value) : absl::StrCat(value); }

 private:
  std::ostream* const out_;
  const bool csv_;
};

std::vector<std::string> Header(const TaskSpec& spec) {
  std::vector<std::string> cells = {"step"};
  for (int i = 0; i < spec.action_dim; ++i) cells.push_back(absl::StrCat("action", i));
  for (int i = 0; i < spec.obs_dim; ++i) cells.push_back(absl::StrCat("obs", i));
  cells.insert(cells.end(), {"reward", "cost", "absorbing"});
  return cells;
}

}  // namespace

absl::Status RunRolloutCommand(const RolloutCommand& command, std::ostream* out) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Task> task, TaskOf(command));
  const TaskSpec& spec = task->spec();
  ASSIGN_OR_RETURN(const auto actions, ReadActions(command.actions, spec));
  ASSIGN_OR_RETURN(const auto init, ParseInit(command.init));
  std::vector<double> observation(spec.obs_dim);
  RandomStream stream(StreamKey("rollout.reset", {}));
  RETURN_IF_ERROR(task->ResetTo(init, &stream, observation.data()));

  const LineWriter line(out, command.csv);
  line.Write(Header(spec));
  std::vector<std::string> cells = {"0"};
  cells.insert(cells.end(), spec.action_dim, "");
  for (const double value : observation) cells.push_back(line.Number(value));
  cells.insert(cells.end(), {"", line.Number(task->Cost()), "0"});
  line.Write(cells);
  for (size_t step = 0; step < actions.size(); ++step) {
    const StepResult result = task->Step(actions[step].data(), observation.data());
    if (!result.valid) {
      return absl::InternalError(
          absl::StrCat("step ", step + 1, ": the simulator called it invalid (", spec.name, ")"));
    }
    cells = {std::to_string(step + 1)};
    for (const double value : actions[step]) cells.push_back(line.Number(value));
    for (const double value : observation) cells.push_back(line.Number(value));
    cells.insert(cells.end(), {line.Number(result.reward), line.Number(result.cost), result.absorbing ? "1" : "0"});
    line.Write(cells);
  }
  return absl::OkStatus();
}

}  // namespace datacom
