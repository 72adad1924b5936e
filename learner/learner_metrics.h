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

  void Update(double seconds);
  void PretrainUpdate(double seconds);
  void Waited(double seconds, bool for_draw);
  void Published(int snapshots);
  void Checkpointed(double seconds);
  void SetRepeatedUpdates(uint64_t updates);
  void SetPendingEvaluations(uint32_t items);
  void SetSubscribers(int count);  // thread-safe
  void Episode(int member, const v1::Episode& episode);
  void Evaluated(int member, const EvaluationMeans& means);
  // Called once. Series of tasks with several costs; others have none. device: that computes the updates.
  void NameCosts(const std::vector<std::string>& names);
  void SetDevice(const std::string& device);
  // Called once per member. `label` names its setting in a sweep.
  void Introduce(int member, uint64_t seed, const std::string& label, double cost_budget);
  void SetCriticRunaway(int member, bool runaway);  // shown by the next Refresh
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
  prometheus::Counter& updates_;
  prometheus::Counter& pretrain_updates_;
  prometheus::Histogram& update_seconds_;
  prometheus::Counter& wait_draw_;
  prometheus::Counter& wait_features_;
  prometheus::Counter& published_;
  prometheus::Counter& checkpoints_;
  prometheus::Histogram& checkpoint_seconds_;
  prometheus::Gauge& checkpoint_time_;
  prometheus::Gauge& repeated_;
  prometheus::Gauge& pending_;
  prometheus::Gauge& subscribers_;
  prometheus::Gauge& diverged_;
  prometheus::Gauge& progress_;
  prometheus::Gauge& disk_free_;
  prometheus::Gauge& threads_;
  prometheus::Gauge& thread_wait_;
  MemberGauge env_steps_, budget_, return_, cvar_, critic_runaway_, eval_return_, eval_violation_, eval_cost_,
      eval_violating_steps_, eval_abandoned_;
  std::vector<std::pair<EpochStatistic, MemberGauge>> statistics_;
  MemberCounter episodes_, violations_, cost_;
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
