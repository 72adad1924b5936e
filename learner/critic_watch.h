// Whether a member's critic runs away: the one rule behind the status `runaway` (progress.csv, `datacom status`,
// report), the gauge datacom_member_critic_runaway with its alert, and the learner's warning.
//
// An epoch's mean critic loss is more than ten times the smallest of the ten epochs before it. The first ten epochs of
// learning are not compared with: there the loss is small because no reward has been met, and it grows in every healthy
// run. So the first verdict is on the 21st. Once the loss has stayed high for ten epochs, it is the new measure and the
// rule is silent again. Plain data, not thread-safe.
#ifndef DATACOM_LEARNER_CRITIC_WATCH_H_
#define DATACOM_LEARNER_CRITIC_WATCH_H_

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace datacom::learner {

class CriticWatch {
 public:
  static constexpr size_t kFirst = 10;   // epochs of learning that are not compared with
  static constexpr size_t kEpochs = 10;  // epochs that one is compared with
  static constexpr double kGrowth = 10;

  CriticWatch() = default;
  explicit CriticWatch(std::vector<double> losses) : losses_(std::move(losses)) {}  // of another's losses()

  // An epoch ended with this mean loss; one without an update has none (NaN) and does not count.
  void Add(double loss) {
    if (std::isnan(loss)) return;
    losses_.push_back(loss);
    if (losses_.size() > kFirst + kEpochs + 1) losses_.erase(losses_.begin());
  }
  bool runaway() const { return losses_.size() == kFirst + kEpochs + 1 && now() > kGrowth * before(); }
  // Of at least kEpochs + 1 epochs: the newest loss, and the smallest of the kEpochs before it.
  double now() const { return losses_.back(); }
  double before() const { return *std::min_element(losses_.end() - 1 - kEpochs, losses_.end() - 1); }
  const std::vector<double>& losses() const { return losses_; }  // the newest 21, oldest first

 private:
  std::vector<double> losses_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_CRITIC_WATCH_H_
