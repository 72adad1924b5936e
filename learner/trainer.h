// The learner's main loop: batches in, updates, epochs, snapshots, checkpoints, records.
//
// One thread runs it and owns the algorithm while it does; the parts are owned by the caller and outlive it. Every
// exception of the algorithm becomes a Status here. All that decides numbers or rows happens on this thread, in the
// order of updates, so that a resumed run continues exactly.
#ifndef DATACOM_LEARNER_TRAINER_H_
#define DATACOM_LEARNER_TRAINER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "datacom/v1/checkpoint.pb.h"
#include "datacom/v1/experiment.pb.h"
#include "learner/algorithms/algorithm.h"
#include "learner/checkpoint.h"
#include "learner/critic_watch.h"
#include "learner/epoch_policies.h"
#include "learner/evaluations.h"
#include "learner/learner_metrics.h"
#include "learner/learner_status.h"
#include "learner/ledger_recorder.h"
#include "learner/prefetch.h"
#include "learner/records.h"
#include "learner/schedule.h"
#include "learner/snapshot_hub.h"

namespace datacom::learner {

// Whether a run may go on from this checkpoint; looks at nothing else. FAILED_PRECONDITION naming both runs,
// INVALID_ARGUMENT naming what of the experiment does not fit.
absl::Status CheckResume(const v1::LearnerCheckpoint& checkpoint, const std::string& run_id,
                         const v1::Experiment& resolved);

class Trainer {
 public:
  struct Parts {
    std::string run_id;
    uint32_t incarnation = 1;
    v1::Experiment experiment;  // resolved
    Algorithm* algorithm = nullptr;
    SnapshotHub* hub = nullptr;
    Evaluations* evaluations = nullptr;
    EpochPolicies* policies = nullptr;
    RunRecords* records = nullptr;
    LedgerRecorder* ledger = nullptr;
    CheckpointStore* checkpoints = nullptr;
    LearnerMetrics* metrics = nullptr;
    LearnerStatus* learner_status = nullptr;
    const Clock* clock = &Clock::Real();
    // Waits up to so long; true when the process was asked to stop.
    std::function<bool(std::chrono::milliseconds)> wait_for_stop;
  };
  explicit Trainer(Parts parts);

  // Continues from a checkpoint that CheckResume lets pass and whose state the algorithm has loaded; before Run.
  void Restore(const v1::LearnerCheckpoint& learner);
  uint64_t update() const { return update_; }
  uint64_t pretrain_update() const { return pretrain_update_; }
  // The pre-training updates that are left, before Run; null: there are none. CANCELLED as Run's.
  absl::Status Pretrain(std::unique_ptr<Prefetch> prefetch);
  // OK: all updates done, all evaluations reported and written. CANCELLED: asked to stop, a checkpoint is written.
  absl::Status Run(Prefetch* prefetch);

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
  void WatchCritics(const Stats& stats, v1::EpochRecord* record);
  absl::Status WriteCompletedEpochs();
  absl::Status WaitForEvaluations();
  void DismissEvaluators();
  absl::Status SaveCheckpoint();
  absl::Status AdvanceLedger();         // to the rows seen; a replay out of reach is tried again later
  absl::StatusOr<bool> FinishLedger();  // true: it holds every row of the run
  absl::Status Publish();
  absl::Status TakeSnapshots(std::vector<Snapshot>* snapshots);
  absl::Status Refresh();
  v1::EpochRecord& OpenEpoch(uint32_t epoch);
  double WallSeconds() const;

  Parts parts_;
  const Schedule schedule_;
  const int members_;
  uint64_t update_ = 0, pretrain_update_ = 0;
  uint32_t next_epoch_ = 0;
  uint64_t last_epoch_update_ = 0, last_epoch_steps_ = 0;
  double wall_before_ = 0;  // of earlier starts
  Clock::Time start_;
  Clock::Time refreshed_;
  std::map<uint32_t, v1::EpochRecord> open_;  // train totals of epochs that have not ended, or only with the run
  std::vector<v1::MemberTotals> totals_;      // [M]
  std::vector<uint64_t> inserted_;            // [M] rows, as the newest draw counted them
  std::vector<uint32_t> lanes_;               // [M] likewise
  std::vector<uint8_t> diverged_;             // [M] already reported
  std::vector<CriticWatch> critics_;          // [M] of the epochs that have ended for good
  std::vector<uint8_t> runaway_;              // [M] at the end of the newest epoch
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_TRAINER_H_
