// The state that the training thread writes and the learner's service hands out. Each part is thread-safe by itself.
#ifndef DATACOM_LEARNER_SERVED_STATE_H_
#define DATACOM_LEARNER_SERVED_STATE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "datacom/v1/learner.pb.h"
#include "learner/evaluations.h"
#include "learner/run_settings.h"
#include "learner/snapshot_hub.h"

namespace datacom::learner {

// The learner's current work, for the call Info. The training thread writes it, the service reads it. Thread-safe;
// blocks nowhere.
class LearnerStatus {
 public:
  LearnerStatus(v1::LearnerInfo start, const Clock* clock)
      : clock_(clock), info_(std::move(start)), since_(clock->Now()) {}

  void SetUpdate(uint64_t update);
  // The updates that were done before this start of the learner. They do not count as this start's speed.
  void StartAt(uint64_t update, uint64_t pretrain_update);
  void SetPhase(const std::string& phase, const std::string& waiting_for);
  template <typename Change>
  void Edit(Change change) {
    MutexLock lock(&mutex_);
    change(&info_);
  }
  // A count that grows during long updates, by any thread.
  void SetSignsOfLife(std::shared_ptr<const std::atomic<uint64_t>> signs);
  v1::LearnerInfo Info() const;

 private:
  static constexpr double kRateSeconds = 2;
  const Clock* const clock_;
  mutable Mutex mutex_;
  v1::LearnerInfo info_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const std::atomic<uint64_t>> signs_of_life_ ABSL_GUARDED_BY(mutex_);
  Clock::Time since_ ABSL_GUARDED_BY(mutex_);
  uint64_t counted_ ABSL_GUARDED_BY(mutex_) = 0;
};

struct ServedState {
  // `clock` must outlive this object.
  ServedState(const RunIdentity& run, const std::string& run_dir, const Clock& clock);

  SnapshotHub snapshots;                                      // for actors
  EpochPolicies policies;                                     // for evaluators: files in `run_dir`/policies
  Evaluations evaluations;                                    // work of evaluators and their reports
  LearnerStatus status;                                       // for `datacom status`
  const std::shared_ptr<const v1::TaskOptions> task_options;  // of the run, for its large files
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_SERVED_STATE_H_
// SPDX-License-Identifier: Apache-2.0
