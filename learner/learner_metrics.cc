#include "learner/learner_metrics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <utility>

#include "common/base/files.h"
#include "common/records/evaluation_means.h"

namespace datacom::learner {
namespace {

Metrics::Labels With(Metrics::Labels labels, const std::string& member) {
  labels["member"] = member;
  return labels;
}

}  // namespace

LearnerMetrics::MemberGauge::MemberGauge(Metrics* metrics, const std::string& name, int members,
                                         const Metrics::Labels& labels)
    : values_(members, std::nan("")), quantiles_(members > kMaxMembers) {
  if (quantiles_) {
    for (const char* quantile : {"min", "median", "max"})
      gauges_.push_back(&metrics->gauge(name, With(labels, quantile)));
    return;
  }
  for (int member = 0; member < members; ++member) {
    gauges_.push_back(&metrics->gauge(name, With(labels, std::to_string(member))));
  }
}

void LearnerMetrics::MemberGauge::Set(int member, double value) {
  values_[member] = value;
  if (!quantiles_) gauges_[member]->Set(value);
}

void LearnerMetrics::MemberGauge::Publish() {
  if (!quantiles_) return;
  std::vector<double> sorted;
  std::copy_if(values_.begin(), values_.end(), std::back_inserter(sorted), [](double v) { return !std::isnan(v); });
  if (sorted.empty()) return;
  std::sort(sorted.begin(), sorted.end());
  gauges_[0]->Set(sorted.front());
  gauges_[1]->Set(sorted[sorted.size() / 2]);
  gauges_[2]->Set(sorted.back());
}

LearnerMetrics::MemberCounter::MemberCounter(Metrics* metrics, const std::string& name, int members,
                                             const Metrics::Labels& labels) {
  if (members > kMaxMembers) {
    counters_.push_back(&metrics->counter(name, With(labels, "all")));
    return;
  }
  for (int member = 0; member < members; ++member) {
    counters_.push_back(&metrics->counter(name, With(labels, std::to_string(member))));
  }
}

LearnerMetrics::LearnerMetrics(Metrics* metrics, int members, const std::string& algorithm, const std::string& run_dir,
                               std::shared_ptr<const Team> team)
    : metrics_(metrics), members_(members), run_dir_(run_dir), team_(std::move(team)) {
  for (const EpochStatistic& statistic : StatisticsOf(algorithm)) {
    if (!statistic.about().has_help()) continue;
    statistics_.emplace_back(statistic, MemberGauge(metrics, statistic.gauge(), members));
  }
  threads_.Set(team_ == nullptr ? 1 : team_->threads());
}

void LearnerMetrics::Update(double seconds, bool pretrain) {
  (pretrain ? pretrain_updates_ : updates_).Increment();
  update_seconds_.Observe(seconds);
}

void LearnerMetrics::Checkpointed(double seconds) {
  checkpoints_.Increment();
  checkpoint_seconds_.Observe(seconds);
  checkpoint_time_.Set(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
}

void LearnerMetrics::NameCosts(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    named_costs_.push_back(
        {MemberCounter(metrics_, "datacom_member_named_cost_total", members_, {{"cost", name}}),
         MemberGauge(metrics_, "datacom_member_eval_named_cost", members_, {{"cost", name}}),
         MemberCounter(metrics_, "datacom_member_named_violations_total", members_, {{"cost", name}})});
  }
}

void LearnerMetrics::Introduce(int member, uint64_t seed, const std::string& label, double cost_budget) {
  budget_.Set(member, cost_budget);
  if (budget_.quantiles()) return;
  const Metrics::Labels labels = {{"member", std::to_string(member)}, {"seed", std::to_string(seed)}, {"label", label}};
  metrics_->gauge("datacom_member_info", labels).Set(1);
}

void LearnerMetrics::Episode(int member, const v1::Episode& episode) {
  episodes_.Add(member, 1);
  violations_.Add(member, episode.violating_steps());
  cost_.Add(member, episode.sum_cost());
  return_.Set(member, episode.return_());
  const NamedCostValues named = NamedCostsOf(episode);
  for (size_t i = 0; i < std::min(named.size(), named_costs_.size()); ++i) {
    named_costs_[i].total.Add(member, named[i].sum_cost);
    named_costs_[i].violations.Add(member, named[i].violating_steps);
  }
}

void LearnerMetrics::Evaluated(int member, const EvaluationMeans& means) {
  eval_return_.Set(member, means.discounted_return);
  eval_violation_.Set(member, means.max_violation);
  eval_cost_.Set(member, means.sum_cost);
  eval_violating_steps_.Set(member, means.violating_steps);
  eval_abandoned_.Set(member, means.abandoned);
  eval_shield_share_.Set(member, means.shield_share);
  for (size_t i = 0; i < std::min(means.named.size(), named_costs_.size()); ++i) {
    named_costs_[i].eval.Set(member, means.named[i].sum_cost);
  }
}

void LearnerMetrics::RefreshThreads() {
  if (team_ == nullptr) return;
  const Team::Times times = team_->times();
  const double available = (times.rounds - team_times_.rounds) * team_->threads();
  if (available <= 0) return;
  thread_wait_.Set(std::max(0.0, 1 - (times.busy - team_times_.busy) / available));
  team_times_ = times;
}

void LearnerMetrics::Refresh(uint64_t env_steps, double progress, const Stats& stats) {
  progress_.Set(progress);
  RefreshThreads();
  if (const auto free = FreeBytes(run_dir_); free.ok()) disk_free_.Set(static_cast<double>(*free));
  double diverged = 0;
  for (size_t member = 0; member < stats.size(); ++member) {
    const v1::MemberEpoch& epoch = stats[member];
    // Right after the end of an epoch no update has been made: the old values stay.
    const bool updated = std::any_of(statistics_.begin(), statistics_.end(), [&epoch](const auto& shown) {
      return shown.first.about().fold() == v1::Statistic::MEAN && !std::isnan(shown.first.Get(epoch));
    });
    env_steps_.Set(member, static_cast<double>(env_steps));
    diverged += epoch.diverged();
    if (updated) cvar_.Set(member, epoch.constraint_mean() + epoch.delta());  // the constraint is CVaR - delta
    for (auto& [statistic, gauge] : statistics_) {
      if (updated || statistic.about().fold() == v1::Statistic::LAST) gauge.Set(member, statistic.Get(epoch));
    }
  }
  diverged_.Set(diverged);
  for (MemberGauge* gauge :
       {&env_steps_, &budget_, &return_, &cvar_, &critic_runaway_, &shield_locked_, &eval_shield_share_, &eval_return_,
        &eval_violation_, &eval_cost_, &eval_violating_steps_, &eval_abandoned_}) {
    gauge->Publish();
  }
  for (auto& [statistic, gauge] : statistics_) gauge.Publish();
  for (NamedCost& cost : named_costs_) cost.eval.Publish();
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
