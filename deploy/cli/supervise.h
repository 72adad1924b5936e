// Decides what to do when a role's process ends: restart it, leave it ended, or end the run. RunProgress says whether
// the run gets anywhere.
//
// Only decides: it starts and stops no process. Not thread-safe.
#ifndef DATACOM_DEPLOY_CLI_SUPERVISE_H_
#define DATACOM_DEPLOY_CLI_SUPERVISE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "datacom/v1/learner.pb.h"
#include "datacom/v1/replay.pb.h"

namespace datacom::cli {

enum class Role { kReplay, kLearner, kActor, kEvaluator };

// Whether a run moves, by the answers of its replay and learner.
class RunProgress {
 public:
  void Observe(const std::optional<v1::ReplayInfo>& replay, const std::optional<v1::LearnerInfo>& learner);
  // How often something was new: more rows, a later update, or fewer evaluations left than ever at that update. What a
  // restarted learner repeats is not new.
  uint64_t advances() const { return advances_; }
  // How often rows, update, evaluations left or the learner's signs of life differed from the answers before, also
  // while a learner repeats updates.
  uint64_t changes() const { return changes_; }

 private:
  struct Counts {
    uint64_t rows = 0, updates = 0;  // rows: sum over the members; updates: with the pre-training updates
    uint64_t signs_of_life = 0;      // LearnerInfo.signs_of_life
    uint32_t evaluations_left = UINT32_MAX;
  };
  Counts newest_, best_;  // best_.evaluations_left: the fewest since best_.updates grew
  uint64_t advances_ = 0, changes_ = 0;
};

class RestartPolicy {
 public:
  enum class Action {
    kRestart,   // start it again, not before Decision::at
    kRest,      // leave it ended: an actor or evaluator that exits with 0 has finished its work
    kComplete,  // the learner exited with 0: the run is complete
    kGiveUp,    // end the run with Decision::exit_code, for Decision::reason
  };
  struct Decision {
    Action action = Action::kRestart;
    Clock::Time at{};
    int exit_code = 0;
    std::string reason;
  };

  static constexpr int kMaxRestarts = 5;
  static constexpr std::chrono::seconds kWindow{60};

  explicit RestartPolicy(const Clock* clock) : clock_(clock) {}

  // `process` ended with `exit_code` (128 + signal when killed). Gives up when one process would need more than
  // kMaxRestarts restarts within kWindow, or more than that many, however slowly, without progress of the run between
  // them; and at once on exit code 2 (configuration). The first restart is immediate, the second one within the window
  // waits 100 ms, each further one twice as long as the one before.
  Decision OnExit(const std::string& process, Role role, int exit_code);
  // The run got further.
  void OnProgress() { without_progress_.clear(); }

  int restarts() const { return restarts_; }

 private:
  const Clock* const clock_;
  std::map<std::string, std::deque<Clock::Time>> history_;  // restarts within the window, by process
  std::map<std::string, int> without_progress_;             // restarts since the run got further, by process
  int restarts_ = 0;
};

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_SUPERVISE_H_
// SPDX-License-Identifier: Apache-2.0
