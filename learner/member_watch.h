// Judges a member at the end of every epoch: whether its critic runs away, whether its shield is locked, and whether
// episodes are lost. The column status, the gauges and their alerts, and the learner's warnings use these rules.
// Not thread-safe; nothing blocks.
#ifndef DATACOM_LEARNER_MEMBER_WATCH_H_
#define DATACOM_LEARNER_MEMBER_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "datacom/v1/checkpoint.pb.h"
#include "datacom/v1/member_epoch.pb.h"

namespace datacom::learner {

// Decides whether the loss of a member's critic runs away. The status `runaway` (progress.csv, `datacom status`, the
// report), the gauge datacom_member_critic_runaway with its alert, and the learner's warning all use this rule.
//
// A critic runs away if an epoch's mean critic loss is more than ten times the smallest of the ten epochs before it.
// The first ten epochs of learning are left out of the comparison: their loss is small because the agent has met no
// reward yet, and it grows in every healthy run. So epoch 21 is the first that is judged. A loss that has stayed high
// for ten epochs becomes the new reference, and the rule no longer reports it. The rule is for critics that learn from
// a replay. On-policy algorithms are not judged: an epoch may hold two episodes there, and the loss of a critic that
// meets its first fall is many times that of an epoch without one.
class CriticWatch {
 public:
  static constexpr size_t kFirst = 10;   // first epochs of learning, left out
  static constexpr size_t kEpochs = 10;  // epochs before an epoch, which it is compared with
  static constexpr double kGrowth = 10;

  CriticWatch() = default;
  explicit CriticWatch(std::vector<double> losses) : losses_(std::move(losses)) {}  // continues from losses()

  // The mean loss of an epoch that has ended. NaN, from an epoch without an update, does not count.
  void Add(double loss);
  bool runaway() const { return losses_.size() == kFirst + kEpochs + 1 && now() > kGrowth * before(); }
  // The newest loss, and the smallest of the kEpochs before it. They need at least kEpochs + 1 epochs.
  double now() const { return losses_.back(); }
  double before() const;
  const std::vector<double>& losses() const { return losses_; }  // the newest 21, oldest first

 private:
  std::vector<double> losses_;
};

// Whether more than a tenth of a member's training episodes were abandoned: the status `abandoned`.
bool Abandons(const v1::MemberTotals& totals);

// A critic also runs away if the entropy temperature is above 0.1 and over thirty times the smallest at the end of an
// epoch before. Its size alone says nothing: some tasks keep it near 1.
//
// The shield is locked if the learned constraint was above 0 in more than half of the states of each of the newest
// epochs, which have 10,000 rows or more together. Outside the feasible set the safe map overrides every action, so
// that nothing is learned.
class MemberWatch {
 public:
  MemberWatch() = default;
  // Continues from what Save has written. Critics of on-policy algorithms are not judged.
  MemberWatch(const v1::MemberTotals& totals, bool on_policy);
  void Save(v1::MemberTotals* totals) const;

  // Judges an epoch of `rows` rows. Returns a sentence on what has become wrong; empty: nothing new. Of an epoch that
  // the end of the run cuts short nothing is kept but the judgement: a longer run ends it again.
  std::string EndEpoch(const v1::MemberEpoch& stats, uint64_t rows, bool cut_short);
  bool runaway() const { return runaway_; }  // at the end of the newest epoch
  bool locked() const { return locked_; }

 private:
  bool on_policy_ = false, runaway_ = false, locked_ = false;
  CriticWatch critic_;
  double smallest_alpha_ = 0;  // 0: none
  uint64_t locked_rows_ = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_MEMBER_WATCH_H_
// SPDX-License-Identifier: Apache-2.0
