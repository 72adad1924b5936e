// Simulates a violation of training again from the run's ledger and compares it bit for bit. Blocks on the disk and
// while it simulates.
#ifndef DATACOM_DEPLOY_TOOLS_PLAY_VIOLATION_H_
#define DATACOM_DEPLOY_TOOLS_PLAY_VIOLATION_H_

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actor/episode_player.h"
#include "common/records/ledger.h"
#include "common/tasks/task.h"
#include "deploy/tools/play/actions.h"

namespace datacom::tools {

// Not thread-safe; owns its task.
class ViolationEpisode {
 public:
  // Reads experiment and ledger of the run. NOT_FOUND or INVALID_ARGUMENT, naming what is missing; the errors of
  // ReadViolation and ReadEpisode.
  static absl::StatusOr<std::unique_ptr<ViolationEpisode>> Load(const std::string& run_dir, uint64_t id);

  const LedgerViolation& violation() const { return violation_; }
  const TaskSpec& spec() const { return task_->spec(); }
  const TaskModel& model() const { return model_; }
  uint32_t steps() const { return static_cast<uint32_t>(recorded_.size()); }
  std::string title() const;  // one line

  // Simulates the recorded steps of the episode. An error of the watcher ends it and is returned. INTERNAL, naming the
  // first step whose cost, observations, reward or end differ from the record in any bit of float32, and the
  // difference.
  absl::Status Play(const StateWatcher& watcher);

 private:
  ViolationEpisode() = default;  // Load fills it
  absl::Status Compare(uint32_t step, const std::vector<float>& before, const std::vector<float>& after,
                       const StepResult& result) const;

  std::string run_;  // name of the experiment
  uint64_t run_seed_ = 0;
  LedgerViolation violation_;
  std::vector<LedgerStep> recorded_;
  TaskModel model_;
  std::unique_ptr<Task> task_;
};

struct ViolationCommand {
  std::string run_dir;
  uint64_t id = 0;
  bool csv = false;
  int width = 0;  // of a line of the description; 0: any (WrapLines)
};
// Plays the violation's episode and prints a description on `out`. csv: prints the states on `out`, in the format of
// `rollout`, and the description on `notes`. Errors as above.
absl::Status RunViolationCommand(const ViolationCommand& command, std::ostream* out, std::ostream* notes);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_PLAY_VIOLATION_H_
// SPDX-License-Identifier: Apache-2.0
