// What the learner is doing, for the call Info. The training thread writes it, the service reads it. Thread-safe;
// blocks nowhere.
#ifndef DATACOM_LEARNER_LEARNER_STATUS_H_
#define DATACOM_LEARNER_LEARNER_STATUS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "datacom/v1/learner.pb.h"

namespace datacom::learner {

class LearnerStatus {
 public:
  LearnerStatus(v1::LearnerInfo start, const Clock* clock)
      : clock_(clock), info_(std::move(start)), since_(clock->Now()) {}

  void SetUpdate(uint64_t update) {
    MutexLock lock(&mutex_);
    info_.set_update(update);
    const double elapsed = Seconds(clock_->Now() - since_);
    if (elapsed < kRateSeconds) return;
    info_.set_updates_per_second((update - counted_) / elapsed);
    counted_ = update;
    since_ = clock_->Now();
  }
  void SetPretrainUpdate(uint64_t update) {
    MutexLock lock(&mutex_);
    info_.set_pretrain_update(update);
  }
  // The updates that were done before this start of the learner. They do not count as this start's speed.
  void StartAt(uint64_t update, uint64_t pretrain_update) {
    MutexLock lock(&mutex_);
    info_.set_update(update);
    info_.set_pretrain_update(pretrain_update);
    counted_ = update;
    since_ = clock_->Now();
  }
  void SetPhase(const std::string& phase, const std::string& waiting_for) {
    MutexLock lock(&mutex_);
    info_.set_phase(phase);
    info_.set_waiting_for(waiting_for);
    if (phase != "learning") info_.set_updates_per_second(0);
  }
  template <typename Change>
  void Edit(Change change) {
    MutexLock lock(&mutex_);
    change(&info_);
  }
  // A count that grows during long updates, by any thread.
  void SetSignsOfLife(std::shared_ptr<const std::atomic<uint64_t>> signs) {
    MutexLock lock(&mutex_);
    signs_of_life_ = std::move(signs);
  }
  v1::LearnerInfo Info() const {
    MutexLock lock(&mutex_);
    v1::LearnerInfo info = info_;
    if (signs_of_life_ != nullptr) info.set_signs_of_life(*signs_of_life_);
    return info;
  }

 private:
  static constexpr double kRateSeconds = 2;
  const Clock* const clock_;
  mutable Mutex mutex_;
  v1::LearnerInfo info_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const std::atomic<uint64_t>> signs_of_life_ ABSL_GUARDED_BY(mutex_);
  Clock::Time since_ ABSL_GUARDED_BY(mutex_);
  uint64_t counted_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_LEARNER_STATUS_H_
