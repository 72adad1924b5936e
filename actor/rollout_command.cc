#include "actor/rollout_command.h"

#include <iomanip>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actor/actions.h"
#include "actor/csv.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/tasks/task.h"

namespace datacom {
namespace {

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
  ASSIGN_OR_RETURN(const std::unique_ptr<Task> task, MakeTaskWith(command.task, command.set));
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
