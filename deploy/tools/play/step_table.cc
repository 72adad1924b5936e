#include "deploy/tools/play/step_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/records/csv.h"

namespace datacom::tools {

StepTable::StepTable(const TaskSpec& spec, bool csv, std::ostream* out, int width)
    : obs_dim_(spec.obs_dim), action_dim_(spec.action_dim), csv_(csv), out_(out), width_(csv ? 0 : width) {
  std::vector<std::string> cells = {"step"};
  for (int i = 0; i < action_dim_; ++i) cells.push_back(absl::StrCat("action", i));
  for (int i = 0; i < obs_dim_; ++i) cells.push_back(absl::StrCat("obs", i));
  cells.insert(cells.end(), {"reward", "cost", "absorbing"});
  Write(cells);
}

StepTable::~StepTable() {
  if (width_ > 0) *out_ << JoinColumns(kept_, width_);
}

void StepTable::Add(const actor::EpisodeState& state, const double* action) {
  const StepResult& reached = state.reached;
  std::vector<std::string> cells = {std::to_string(state.step)};
  for (int i = 0; i < action_dim_; ++i) cells.push_back(action == nullptr ? "" : Number(action[i]));
  for (int i = 0; i < obs_dim_; ++i) cells.push_back(Number(state.observation[i]));
  cells.push_back(action == nullptr ? "" : Number(reached.reward));
  cells.push_back(Number(reached.cost));
  cells.emplace_back(reached.absorbing ? "1" : "0");
  Write(cells);
}

std::string StepTable::Number(double value) const { return csv_ ? Cell(value) : absl::StrCat(value); }

void StepTable::Write(const std::vector<std::string>& cells) {
  if (csv_) {
    *out_ << absl::StrJoin(cells, ",") << '\n';
    return;
  }
  kept_.resize(std::max(kept_.size(), cells.size()));
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string cell = absl::StrFormat("%13s", cells[i]);
    if (width_ == 0) *out_ << cell;
    if (width_ > 0) kept_[i].push_back(cell);
  }
  if (width_ == 0) *out_ << '\n';
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
