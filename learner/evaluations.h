// Evaluation work: one item a (epoch, member), leased to one evaluator at a time, reported exactly once.
//
// An ended epoch is added with its record; its items are handed out in (epoch, member) order. A lease that runs out is
// handed out again; its late report is accepted only while nobody else has reported or holds the item. An epoch is
// popped once all its items are reported, in epoch order, so that rows of progress.csv keep their order. Thread-safe;
// blocks nowhere.
#ifndef DATACOM_LEARNER_EVALUATIONS_H_
#define DATACOM_LEARNER_EVALUATIONS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "datacom/v1/checkpoint.pb.h"
#include "datacom/v1/learner.pb.h"

namespace datacom::learner {

class Evaluations {
 public:
  struct Options {
    const Clock* clock = &Clock::Real();
    uint32_t episodes = 25;  // of one item
    double lease_seconds = 60;
    double retry_seconds = 1;
    uint32_t incarnation = 1;  // of the learner: makes lease numbers unique over its restarts
    std::string experiment;    // resolved text, told to evaluators
  };
  explicit Evaluations(Options options) : options_(std::move(options)) {}

  void Add(v1::EpochRecord record);
  // No further epochs will come, and what was reported is safe: evaluators are told to leave once nothing is left.
  void Finish();

  // An evaluator that asks again while it holds a lease gets the same item with the lease renewed.
  v1::LeaseReply Lease(const std::string& evaluator);
  // True when the lease's item is reported with this (its first episodes count) or was and its epoch is not popped yet;
  // false: nothing was stored. INVALID_ARGUMENT when their number is wrong or a value is not finite.
  absl::StatusOr<bool> Report(const v1::ReportRequest& request);

  // The oldest epoch, once every item of it is reported.
  std::optional<v1::EpochRecord> PopCompleted();
  std::vector<v1::EpochRecord> Pending() const;  // for a checkpoint
  uint32_t pending_items() const;
  bool asked() const;  // whether any evaluator ever asked for work
  // Whether every evaluator that asked within the last lease time was told that nothing is left.
  bool everyone_told() const;

 private:
  struct Item {
    uint64_t lease = 0;  // 0: free
    std::string evaluator;
    Clock::Time expires{};
  };
  struct Epoch {
    v1::EpochRecord record;
    std::vector<Item> items;  // one a member
  };
  v1::LeaseReply Reply(const Epoch& epoch, uint32_t member) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Grant(Item* item, const std::string& evaluator) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  std::deque<Epoch> epochs_ ABSL_GUARDED_BY(mutex_);
  uint32_t leases_ ABSL_GUARDED_BY(mutex_) = 0;
  bool finish_ ABSL_GUARDED_BY(mutex_) = false;
  struct Evaluator {
    Clock::Time asked{};
    bool told_finished = false;
  };
  std::map<std::string, Evaluator> evaluators_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_EVALUATIONS_H_
