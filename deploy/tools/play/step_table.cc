#include "deploy/tools/play/step_table.h"

#include <iomanip>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/records/csv.h"

namespace datacom::tools {

StepTable::StepTable(const TaskSpec& spec, bool csv, std::ostream* out)
    : obs_dim_(spec.obs_dim), action_dim_(spec.action_dim), csv_(csv), out_(out) {
  std::vector<std::string> cells = {"step"};
  for (int i = 0; i < action_dim_; ++i) cells.push_back(absl::StrCat("action", i));
  for (int i = 0; i < obs_dim_; ++i) cells.push_back(absl::StrCat("obs", i));
  cells.insert(cells.end(), {"reward", "cost", "absorbing"});
  Write(cells);
}

void StepTable::Start(const double* observation, double cost) {
  std::vector<std::string> cells = {"0"};
  cells.insert(cells.end(), action_dim_, "");
  for (int i = 0; i < obs_dim_; ++i) cells.push_back(Number(observation[i]));
  cells.insert(cells.end(), {"", Number(cost), "0"});
  Write(cells);
}

void StepTable::Step(uint32_t step, const double* action, const double* observation, const StepResult& result) {
  std::vector<std::string> cells = {std::to_string(step)};
  for (int i = 0; i < action_dim_; ++i) cells.push_back(Number(action[i]));
  for (int i = 0; i < obs_dim_; ++i) cells.push_back(Number(observation[i]));
  cells.insert(cells.end(), {Number(result.reward), Number(result.cost), result.absorbing ? "1" : "0"});
  Write(cells);
}

std::string StepTable::Number(double value) const { return csv_ ? Cell(value) : absl::StrCat(value); }

void StepTable::Write(const std::vector<std::string>& cells) const {
  if (csv_) {
    *out_ << absl::StrJoin(cells, ",") << '\n';
    return;
  }
  for (const std::string& cell : cells) *out_ << std::setw(13) << cell;
  *out_ << '\n';
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
