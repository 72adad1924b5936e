// The state of a run as `train` and `status` show it: plain data, rendered as a table or as one line.
//
// Rendering is pure. Nothing is thread-safe.
#ifndef DATACOM_DEPLOY_CLI_PROGRESS_H_
#define DATACOM_DEPLOY_CLI_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "datacom/v1/learner.pb.h"
#include "datacom/v1/replay.pb.h"
#include "nlohmann/json.hpp"

namespace datacom::cli {

struct ProgressView {
  std::string title;  // experiment and run folder
  double elapsed_seconds = 0;
  uint64_t goal_steps = 0;      // per member
  double steps_per_second = 0;  // sum over the members
  int actors = 0, restarts = 0;
  bool learns_delta = true;
  bool learner_known = false;  // it has answered; otherwise only steps and episodes of the members are known
  v1::LearnerInfo learner;     // its answer, with newer numbers of the replay; "starting" before it answers
};

// Merges the answers of the services; either may be missing while its process restarts.
ProgressView MakeProgress(const std::optional<v1::ReplayInfo>& replay, const std::optional<v1::LearnerInfo>& learner);

// The smaller of two fractions in [0, 1]: the slowest member's steps over their goal, the updates over their target.
double FractionDone(const ProgressView& view);
// Seconds left at the present rates; nothing while no rate is known.
std::optional<double> EtaSeconds(const ProgressView& view);

// "1:02:03", "04:05".
std::string FormatDuration(double seconds);
// "12,345,678".
std::string FormatCount(uint64_t value);
// "work repeated: 730 updates (1.7 %) in 3 restarts of the learner\n"; empty for the first start. `done`: the updates
// of the run's state, `incarnation`: the number of the learner's start.
std::string RepeatedWork(uint64_t repeated, uint64_t done, uint32_t incarnation);

// A bar, the rates and one line for each of the first `max_members` members. Lines end with "\n". The members' columns
// stand in the order of their importance; those that do not fit into `width` are left out. Other lines are cut, or
// wrapped if `wrap`. A width of 0 is none.
std::string RenderTable(const ProgressView& view, int width, int max_members, bool wrap = false);
// The same for programs: the facts above, null where one is not known, and "members", MemberProgress as MessageJson.
nlohmann::json ProgressJson(const ProgressView& view);
// One line without "\n", for logs and pipes.
std::string RenderLine(const ProgressView& view);
// The replay's sentences about who waits, without those that RenderTable shows. A learner that waits for rows while the
// run moves does its normal work, which neither of them calls waiting.
std::vector<std::string> OtherWaits(const ProgressView& view, const v1::ReplayInfo& replay);

// Redraws a block of lines in place on a terminal.
class LiveBlock {
 public:
  // Returns escape sequences that erase the previous block, followed by the new block.
  std::string Redraw(const std::string& block);
  // Erases the block and prints `text`, which stays above the next block.
  std::string PrintAbove(const std::string& text);

 private:
  int lines_ = 0;
};

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_PROGRESS_H_
// SPDX-License-Identifier: Apache-2.0
