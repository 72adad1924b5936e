// Prints a played episode, one line per state: `step,action0..,obs0..,reward,cost,absorbing`; the start has neither
// action nor reward. Not thread-safe; the caller owns the stream, which must outlive the table.
#ifndef DATACOM_DEPLOY_TOOLS_PLAY_STEP_TABLE_H_
#define DATACOM_DEPLOY_TOOLS_PLAY_STEP_TABLE_H_

#include <ostream>
#include <string>
#include <vector>

#include "actor/episode_player.h"
#include "common/base/standard_output.h"
#include "common/tasks/task.h"

namespace datacom::tools {

class StepTable {
 public:
  // csv: comma-separated, full precision; else aligned. Writes the header. With a width the aligned columns are kept
  // and printed at the end, folded (JoinColumns).
  StepTable(const TaskSpec& spec, bool csv, std::ostream* out, int width = 0);
  ~StepTable();
  StepTable(const StepTable&) = delete;
  StepTable& operator=(const StepTable&) = delete;
  // Prints a state, and the action that led there; null for the start.
  void Add(const actor::EpisodeState& state, const double* action);

 private:
  std::string Number(double value) const;
  void Write(const std::vector<std::string>& cells);

  const int obs_dim_, action_dim_;
  const bool csv_;
  std::ostream* const out_;
  const int width_;
  std::vector<TableColumn> kept_;
};

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_PLAY_STEP_TABLE_H_
// SPDX-License-Identifier: Apache-2.0
