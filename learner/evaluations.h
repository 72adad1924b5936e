// The work of evaluators: one item per epoch and member, leased to one evaluator at a time, reported exactly once.
//
// An epoch that has ended is added with its record. Its items are handed out by epoch, then member. An item whose lease
// has expired, or was renewed for an hour, is handed out again, then not to the same evaluator if there is another; a
// late report counts only if nobody else has been given the item. An epoch is popped once all its items are reported,
// in order of epochs, so that the rows of progress.csv keep their order. Thread-safe; blocks nowhere.
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
    double longest_seconds = 3600;  // of a lease with its renewals; then another evaluator gets the item
    double retry_seconds = 1;
    uint32_t incarnation = 1;  // the learner's; makes lease numbers unique over its restarts
    std::string experiment;    // the resolved experiment as text, for evaluators
  };
  explicit Evaluations(Options options) : options_(std::move(options)), start_(options_.clock->Now()) {}

  void Add(v1::EpochRecord record);
  // No epoch will be added any more, and a checkpoint holds every report. Evaluators that ask are told to leave as soon
  // as no item is left.
  void Finish();

  static constexpr size_t kMaxEvaluators = 1024;
  // The next item. At most kMaxEvaluators that asked within the last `lease_seconds` get items. An evaluator that asks
  // again while it holds a lease gets the same item, and its lease is renewed.
  v1::LeaseReply Lease(const std::string& evaluator);
  // True: the lease's item is reported, by this report or by an earlier one of the same lease, whose episodes then
  // count. False: the lease is stale, and nothing was stored. INVALID_ARGUMENT: the number of episodes is wrong, or a
  // value is not finite, a violation is negative, or a cost sum is below the largest violation.
  absl::StatusOr<bool> Report(const v1::ReportRequest& request);

  // The oldest epoch, once every item of it is reported.
  std::optional<v1::EpochRecord> PopCompleted();
  std::vector<v1::EpochRecord> Pending() const;  // for a checkpoint
  uint32_t pending_items() const;
  // What waits for evaluators, in words for people: "2 evaluations to be reported (evaluator-0 asked 12 s ago)". Empty
  // without open items, while an evaluator has asked within the last `seconds`, and in the learner's first `seconds`.
  std::string WaitingFor(double seconds) const;
  // Longer than a busy evaluator is silent: it renews its lease after a third of the time.
  double longest_silence() const { return options_.lease_seconds / 2; }
  // True if an evaluator has asked, and all that asked within the last `lease_seconds` were told to leave.
  bool everyone_told() const;

 private:
  struct Item {
    uint64_t lease = 0;  // 0: free
    std::string evaluator;
    Clock::Time since{}, expires{};
    std::string failed;  // the evaluator that held it for longest_seconds
  };
  struct Epoch {
    v1::EpochRecord record;
    std::vector<Item> items;  // one per member
  };
  v1::LeaseReply Reply(const Epoch& epoch, uint32_t member) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if the evaluator is known or may become so.
  bool Remembers(const std::string& evaluator) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether another evaluator has asked within the last `lease_seconds`.
  bool OthersAsk(const std::string& evaluator, Clock::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Grant(Item* item, const std::string& evaluator) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const Clock::Time start_;
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
// SPDX-License-Identifier: Apache-2.0
