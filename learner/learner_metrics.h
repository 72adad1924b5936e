// The learner's Prometheus series. No other process has series of members, so each episode counts once.
//
// In a population of at most kMaxMembers members, each member has series of its own. In a larger one, gauges show
// quantiles over the members (label member = "min", "median", "max") and counters the sum (member = "all"), so that a
// sweep does not flood Prometheus; Refresh updates the quantiles. Not thread-safe, except for SetSubscribers: the
// training thread calls everything else.
#ifndef DATACOM_LEARNER_LEARNER_METRICS_H_
#define DATACOM_LEARNER_LEARNER_METRICS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/team.h"
#include "common/metrics/metrics.h"
#include "common/metrics/statistics.h"
#include "common/records/evaluation_means.h"
#include "datacom/v1/replay.pb.h"
#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

class LearnerMetrics {
 public:
  static constexpr int kMaxMembers = 128;
  // algorithm: has gauges of its statistics. team: divides the updates; null: one thread computes them.
  LearnerMetrics(Metrics* metrics, int members, const std::string& algorithm, const std::string& run_dir,
                 std::shared_ptr<const Team> team = nullptr);

  void Update(double seconds, bool pretrain);
  void Waited(double seconds, bool for_draw) { (for_draw ? wait_draw_ : wait_features_).Increment(seconds); }
  void Published(int snapshots) { published_.Increment(snapshots); }
  void Checkpointed(double seconds);
  void SetRepeatedUpdates(uint64_t updates) { repeated_.Set(static_cast<double>(updates)); }
  void SetPendingEvaluations(uint32_t items) { pending_.Set(items); }
  void SetSubscribers(int count) { subscribers_.Set(count); }  // thread-safe
  void Episode(int member, const v1::Episode& episode);
  void Abandoned(int member, uint64_t episodes) { abandoned_.Add(member, static_cast<double>(episodes)); }
  void Evaluated(int member, const EvaluationMeans& means);
  // Called once. Series of tasks with several costs; others have none. device: that computes the updates.
  void NameCosts(const std::vector<std::string>& names);
  void SetDevice(const std::string& device) {
    metrics_->gauge("datacom_learner_device_info", {{"device", device}}).Set(1);
  }
  // Called once per member. `label` names its setting in a sweep.
  void Introduce(int member, uint64_t seed, const std::string& label, double cost_budget);
  // Shown by the next Refresh.
  void SetShieldLocked(int member, bool locked) { shield_locked_.Set(member, locked ? 1 : 0); }
  void SetCriticRunaway(int member, bool runaway) { critic_runaway_.Set(member, runaway ? 1 : 0); }
  // Shows the rows seen, the share of the run's updates that are done, and the algorithm's current values.
  void Refresh(uint64_t env_steps, double progress, const Stats& stats);

 private:
  // One gauge per member, or three quantiles over the members that have a value.
  class MemberGauge {
   public:
    MemberGauge(Metrics* metrics, const std::string& name, int members, const Metrics::Labels& labels = {});
    void Set(int member, double value);
    void Publish();  // the quantiles
    bool quantiles() const { return quantiles_; }

   private:
    std::vector<prometheus::Gauge*> gauges_;
    std::vector<double> values_;
    bool quantiles_ = false;
  };
  class MemberCounter {
   public:
    MemberCounter(Metrics* metrics, const std::string& name, int members, const Metrics::Labels& labels = {});
    void Add(int member, double value) { counters_[counters_.size() == 1 ? 0 : member]->Increment(value); }

   private:
    std::vector<prometheus::Counter*> counters_;
  };

  void RefreshThreads();

  Metrics* const metrics_;
  const int members_;
  const std::string run_dir_;
  const std::shared_ptr<const Team> team_;
  Team::Times team_times_;  // at the last refresh
  prometheus::Counter& updates_ = metrics_->counter("datacom_learner_updates_total");
  prometheus::Counter& pretrain_updates_ = metrics_->counter("datacom_learner_pretrain_updates_total");
  prometheus::Histogram& update_seconds_ = metrics_->histogram("datacom_learner_update_seconds");
  prometheus::Counter& wait_draw_ = metrics_->counter("datacom_learner_wait_seconds_total", {{"reason", "draw"}});
  prometheus::Counter& wait_features_ =
      metrics_->counter("datacom_learner_wait_seconds_total", {{"reason", "features"}});
  prometheus::Counter& published_ = metrics_->counter("datacom_learner_snapshots_published_total");
  prometheus::Counter& checkpoints_ = metrics_->counter("datacom_learner_checkpoints_total");
  prometheus::Histogram& checkpoint_seconds_ = metrics_->histogram("datacom_learner_checkpoint_seconds");
  prometheus::Gauge& checkpoint_time_ = metrics_->gauge("datacom_learner_checkpoint_timestamp_seconds");
  prometheus::Gauge& repeated_ = metrics_->gauge("datacom_learner_repeated_updates");
  prometheus::Gauge& pending_ = metrics_->gauge("datacom_learner_pending_evaluations");
  prometheus::Gauge& subscribers_ = metrics_->gauge("datacom_learner_subscribers");
  prometheus::Gauge& diverged_ = metrics_->gauge("datacom_learner_diverged_members");
  prometheus::Gauge& progress_ = metrics_->gauge("datacom_learner_progress_ratio");
  prometheus::Gauge& disk_free_ = metrics_->gauge("datacom_learner_disk_free_bytes");
  prometheus::Gauge& threads_ = metrics_->gauge("datacom_learner_threads");
  prometheus::Gauge& thread_wait_ = metrics_->gauge("datacom_learner_thread_wait_ratio");
  MemberGauge env_steps_{metrics_, "datacom_member_env_steps", members_};
  MemberGauge budget_{metrics_, "datacom_member_cost_budget", members_};
  MemberGauge return_{metrics_, "datacom_member_return", members_};
  MemberGauge cvar_{metrics_, "datacom_member_cvar", members_};
  MemberGauge critic_runaway_{metrics_, "datacom_member_critic_runaway", members_};
  MemberGauge shield_locked_{metrics_, "datacom_member_shield_locked", members_};
  MemberGauge eval_shield_share_{metrics_, "datacom_member_eval_shield_share", members_};
  MemberGauge eval_return_{metrics_, "datacom_member_eval_discounted_return", members_};
  MemberGauge eval_violation_{metrics_, "datacom_member_eval_max_violation", members_};
  MemberGauge eval_cost_{metrics_, "datacom_member_eval_sum_cost", members_};
  MemberGauge eval_violating_steps_{metrics_, "datacom_member_eval_violating_steps", members_};
  MemberGauge eval_abandoned_{metrics_, "datacom_member_eval_abandoned_episodes", members_};
  std::vector<std::pair<EpochStatistic, MemberGauge>> statistics_;
  MemberCounter episodes_{metrics_, "datacom_member_episodes_total", members_};
  MemberCounter abandoned_{metrics_, "datacom_member_abandoned_episodes_total", members_};
  MemberCounter violations_{metrics_, "datacom_member_violations_total", members_};
  MemberCounter cost_{metrics_, "datacom_member_cost_total", members_};
  struct NamedCost {
    MemberCounter total;
    MemberGauge eval;
    MemberCounter violations;
  };
  std::vector<NamedCost> named_costs_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_LEARNER_METRICS_H_
// SPDX-License-Identifier: Apache-2.0
