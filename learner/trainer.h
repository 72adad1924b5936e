// The learner's main loop: it takes batches, performs updates, ends epochs, publishes snapshots, writes records and
// checkpoints.
//
// Not thread-safe: one thread runs it and uses algorithm, files and metrics while it does. Whatever decides numbers or
// rows happens on this thread, in the order of updates, so that a resumed run continues exactly. Pretrain and Run block
// until their work is done or the process is asked to stop.
#ifndef DATACOM_LEARNER_TRAINER_H_
#define DATACOM_LEARNER_TRAINER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/nn/snapshot.h"
#include "datacom/v1/checkpoint.pb.h"
#include "learner/algorithms/algorithm.h"
#include "learner/learner_metrics.h"
#include "learner/member_watch.h"
#include "learner/prefetch.h"
#include "learner/run_files.h"
#include "learner/run_records.h"
#include "learner/run_settings.h"
#include "learner/served_state.h"

namespace datacom::learner {

class Trainer {
 public:
  // Waits at most so long; true when the process was asked to stop.
  using WaitForStop = std::function<bool(std::chrono::milliseconds)>;
  // Everything passed by reference must outlive the trainer. `files` has begun.
  Trainer(RunIdentity run, Algorithm& algorithm, ServedState& served, RunFiles& files, LearnerMetrics& metrics,
          const Clock& clock, WaitForStop wait_for_stop);

  // Continues from a checkpoint that CheckResume (common/records/checkpoint.h) accepts and whose state the algorithm
  // has loaded. Before Pretrain and Run.
  void Restore(const v1::LearnerCheckpoint& learner);
  uint64_t update() const { return update_; }
  uint64_t pretrain_update() const { return pretrain_update_; }
  // Performs the pre-training updates that are left; null: there are none. Before Run. CANCELLED as in Run.
  absl::Status Pretrain(std::unique_ptr<Prefetch> prefetch);
  // OK: every update is done, every evaluation is reported and written. CANCELLED: the process was asked to stop, and a
  // checkpoint is written.
  absl::Status Run(Prefetch* prefetch);
  // INVALID_ARGUMENT, with the reason, if all training episodes of a member were abandoned.
  absl::Status CheckEpisodes() const;

 private:
  absl::Status Train(Prefetch* prefetch);
  absl::Status PretrainUpdates(Prefetch* prefetch);
  absl::Status AfterInterruption(absl::Status status);
  absl::Status NextUpdate(Prefetch* prefetch, PreparedUpdate** prepared);
  absl::Status Step(const PreparedUpdate& prepared);
  absl::Status CheckSchedule(const PreparedUpdate& prepared) const;
  absl::Status RecordEpisodes(const PreparedUpdate& prepared);
  absl::Status ApplyEpisodes(const PreparedUpdate& prepared);
  absl::Status EndEpoch();
  void WatchMembers(const Stats& stats, v1::EpochRecord* record);
  absl::Status WriteCompletedEpochs();
  absl::Status WaitForEvaluations();
  void DismissEvaluators();
  absl::Status SaveCheckpoint();
  absl::Status AdvanceLedger();         // to the rows seen; if the replay does not answer, a later call tries again
  absl::StatusOr<bool> FinishLedger();  // true: it holds every row of the run
  absl::Status Publish();
  absl::StatusOr<std::vector<Snapshot>> TakeSnapshots() const;
  absl::Status Refresh();
  v1::EpochRecord& OpenEpoch(uint32_t epoch);
  double WallSeconds() const;

  const RunIdentity run_;
  Algorithm& algorithm_;
  ServedState& served_;
  RunFiles& files_;
  LearnerMetrics& metrics_;
  const Clock& clock_;
  const WaitForStop wait_for_stop_;
  const EpochSchedule schedule_;
  const int members_;
  uint64_t update_ = 0, pretrain_update_ = 0;
  uint64_t replay_start_ = 0;  // proto LearnerCheckpoint
  uint32_t next_epoch_ = 0;
  uint64_t last_epoch_update_ = 0, last_epoch_steps_ = 0;
  double wall_before_ = 0;  // seconds of earlier starts
  Clock::Time start_;
  Clock::Time refreshed_;
  // Training totals of the epochs that have not ended or that the end of the run has cut short, by epoch.
  std::map<uint32_t, v1::EpochRecord> open_;
  std::vector<v1::MemberTotals> totals_;  // [M]
  std::vector<uint64_t> inserted_;        // [M] rows in the replay at the newest draw
  std::vector<uint32_t> lanes_;           // [M] at the newest draw
  std::vector<uint8_t> diverged_;         // [M] 1: its divergence is logged
  std::vector<MemberWatch> watches_;      // [M]
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_TRAINER_H_
// SPDX-License-Identifier: Apache-2.0
