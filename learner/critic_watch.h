// The rule that decides whether a member's critic runs away. The status `runaway` (progress.csv, `datacom status`, the
// report), the gauge datacom_member_critic_runaway with its alert, and the learner's warning all use it.
//
// A critic runs away if an epoch's mean critic loss is more than ten times the smallest of the ten epochs before it.
// The first ten epochs of learning are left out of the comparison: their loss is small because the agent has met no
// reward yet, and it grows in every healthy run. So epoch 21 is the first that is judged. A loss that has stayed high
// for ten epochs becomes the new reference, and the rule no longer reports it. Plain data; not thread-safe.
#ifndef DATACOM_LEARNER_CRITIC_WATCH_H_
#define DATACOM_LEARNER_CRITIC_WATCH_H_

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace datacom::learner {

class CriticWatch {
 public:
  static constexpr size_t kFirst = 10;   // first epochs of learning, left out
  static constexpr size_t kEpochs = 10;  // epochs before an epoch, which it is compared with
  static constexpr double kGrowth = 10;

  CriticWatch() = default;
  explicit CriticWatch(std::vector<double> losses) : losses_(std::move(losses)) {}  // continues from losses()

  // The mean loss of an epoch that has ended. NaN, from an epoch without an update, does not count.
  void Add(double loss) {
    if (std::isnan(loss)) return;
    losses_.push_back(loss);
    if (losses_.size() > kFirst + kEpochs + 1) losses_.erase(losses_.begin());
  }
  bool runaway() const { return losses_.size() == kFirst + kEpochs + 1 && now() > kGrowth * before(); }
  // The newest loss, and the smallest of the kEpochs before it. They need at least kEpochs + 1 epochs.
  double now() const { return losses_.back(); }
  double before() const { return *std::min_element(losses_.end() - 1 - kEpochs, losses_.end() - 1); }
  const std::vector<double>& losses() const { return losses_; }  // the newest 21, oldest first

 private:
  std::vector<double> losses_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_CRITIC_WATCH_H_
