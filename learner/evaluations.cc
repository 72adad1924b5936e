#include "learner/evaluations.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace datacom::learner {

void Evaluations::Add(v1::EpochRecord record) {
  MutexLock lock(&mutex_);
  Epoch epoch;
  epoch.items.resize(record.members_size());
  epoch.record = std::move(record);
  epochs_.push_back(std::move(epoch));
}

void Evaluations::Finish() {
  MutexLock lock(&mutex_);
  finish_ = true;
}

v1::LeaseReply Evaluations::Reply(const Epoch& epoch, uint32_t member) const {
  v1::LeaseReply reply;
  reply.set_lease(epoch.items[member].lease);
  reply.set_member(member);
  reply.set_epoch(epoch.record.epoch());
  reply.set_episodes(options_.episodes);
  reply.set_lease_seconds(options_.lease_seconds);
  reply.set_retry_seconds(options_.retry_seconds);
  reply.set_experiment(options_.experiment);
  return reply;
}

void Evaluations::Grant(Item* item, const std::string& evaluator) {
  item->evaluator = evaluator;
  item->expires = options_.clock->Now() + std::chrono::duration_cast<Clock::Time::duration>(
                                              std::chrono::duration<double>(options_.lease_seconds));
}

bool Evaluations::Remembers(const std::string& evaluator) {
  if (evaluators_.size() < kMaxEvaluators || evaluators_.contains(evaluator)) return true;
  const Clock::Time now = options_.clock->Now();
  std::erase_if(evaluators_,
                [&](const auto& entry) { return Seconds(now - entry.second.asked) >= options_.lease_seconds; });
  return evaluators_.size() < kMaxEvaluators;
}

bool Evaluations::OthersAsk(const std::string& evaluator, Clock::Time now) const {
  return std::any_of(evaluators_.begin(), evaluators_.end(), [&](const auto& entry) {
    return entry.first != evaluator && Seconds(now - entry.second.asked) < options_.lease_seconds;
  });
}

v1::LeaseReply Evaluations::Lease(const std::string& evaluator) {
  MutexLock lock(&mutex_);
  const Clock::Time now = options_.clock->Now();
  v1::LeaseReply reply;
  reply.set_retry_seconds(options_.retry_seconds);
  if (!Remembers(evaluator)) return reply;
  Evaluator& asking = evaluators_[evaluator];
  asking.asked = now;
  for (Epoch& epoch : epochs_) {
    for (size_t member = 0; member < epoch.items.size(); ++member) {
      Item& item = epoch.items[member];
      if (epoch.record.members(member).evaluated() || item.lease == 0 || item.evaluator != evaluator) continue;
      if (Seconds(now - item.since) >= options_.longest_seconds) {
        item.lease = 0;
        item.failed = evaluator;
        continue;
      }
      Grant(&item, evaluator);
      return Reply(epoch, member);
    }
  }
  bool open = false;
  for (Epoch& epoch : epochs_) {
    for (size_t member = 0; member < epoch.items.size(); ++member) {
      Item& item = epoch.items[member];
      if (epoch.record.members(member).evaluated()) continue;
      open = true;
      if (item.lease != 0 && now < item.expires) continue;
      if (item.failed == evaluator && OthersAsk(evaluator, now)) continue;
      item.since = now;
      item.lease = (static_cast<uint64_t>(options_.incarnation) << 32) | ++leases_;
      Grant(&item, evaluator);
      return Reply(epoch, member);
    }
  }
  reply.set_finished(finish_ && !open);
  asking.told_finished = reply.finished();
  reply.set_experiment(options_.experiment);
  return reply;
}

absl::StatusOr<bool> Evaluations::Report(const v1::ReportRequest& request) {
  const auto wrong = [&request](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat("evaluation of member ", request.member(), ", epoch ", request.epoch(), ": ", what...));
  };
  if (static_cast<uint32_t>(request.episodes_size()) != options_.episodes) {
    return wrong(request.episodes_size(), " episodes, expected ", options_.episodes);
  }
  const auto finite = [](const auto& values) {
    return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  };
  for (const v1::EvaluationEpisode& episode : request.episodes()) {
    if (!finite(std::initializer_list<double>{episode.discounted_return(), episode.return_(), episode.max_violation(),
                                              episode.sum_cost()}) ||
        !finite(episode.named_max_violation()) || !finite(episode.named_sum_cost()) || !finite(episode.log_mean())) {
      return wrong("an episode's value is not finite");
    }
    if (episode.max_violation() < 0 || episode.sum_cost() < episode.max_violation() * (1 - 1e-9)) {
      return wrong("an episode with the largest violation ", episode.max_violation(), " and the cost sum ",
                   episode.sum_cost());
    }
    if (episode.violating_steps() > episode.length()) {
      return wrong("an episode with ", episode.length(), " steps, of which ", episode.violating_steps(), " violate");
    }
  }
  MutexLock lock(&mutex_);
  for (Epoch& epoch : epochs_) {
    if (epoch.record.epoch() != request.epoch() || request.member() >= epoch.items.size()) continue;
    const Item& item = epoch.items[request.member()];
    if (item.lease == 0 || item.lease != request.lease()) continue;
    v1::MemberEpoch* member = epoch.record.mutable_members(request.member());
    if (!member->evaluated()) {
      *member->mutable_evaluation() = request.episodes();
      member->set_evaluated(true);
    }
    return true;
  }
  return false;
}

std::optional<v1::EpochRecord> Evaluations::PopCompleted() {
  MutexLock lock(&mutex_);
  if (epochs_.empty()) return std::nullopt;
  for (const v1::MemberEpoch& member : epochs_.front().record.members()) {
    if (!member.evaluated()) return std::nullopt;
  }
  v1::EpochRecord record = std::move(epochs_.front().record);
  epochs_.pop_front();
  return record;
}

std::vector<v1::EpochRecord> Evaluations::Pending() const {
  MutexLock lock(&mutex_);
  std::vector<v1::EpochRecord> records;
  for (const Epoch& epoch : epochs_) records.push_back(epoch.record);
  return records;
}

uint32_t Evaluations::pending_items() const {
  MutexLock lock(&mutex_);
  uint32_t count = 0;
  for (const Epoch& epoch : epochs_) {
    for (const v1::MemberEpoch& member : epoch.record.members()) count += !member.evaluated();
  }
  return count;
}

std::string Evaluations::WaitingFor(double seconds) const {
  const uint32_t items = pending_items();
  if (items == 0) return "";
  MutexLock lock(&mutex_);
  const Clock::Time now = options_.clock->Now();
  const auto newest = std::max_element(evaluators_.begin(), evaluators_.end(),
                                       [](const auto& a, const auto& b) { return a.second.asked < b.second.asked; });
  const std::string what = absl::StrCat(items, items == 1 ? " evaluation" : " evaluations", " to be reported (");
  const double silent = Seconds(now - (newest == evaluators_.end() ? start_ : newest->second.asked));
  if (silent < seconds) return "";
  if (newest == evaluators_.end()) return absl::StrCat(what, "no evaluator has connected)");
  return absl::StrCat(what, newest->first, absl::StrFormat(" asked %.0f s ago", silent),
                      evaluators_.size() > 1 ? ", the others earlier)" : ")");
}

bool Evaluations::everyone_told() const {
  MutexLock lock(&mutex_);
  const Clock::Time now = options_.clock->Now();
  for (const auto& [name, evaluator] : evaluators_) {
    if (!evaluator.told_finished && Seconds(now - evaluator.asked) < options_.lease_seconds) return false;
  }
  return !evaluators_.empty();
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
