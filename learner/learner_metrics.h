// The learner's Prometheus series. Per-member series come from here alone and are fed exactly once a training episode.
//
// Up to kMaxMembers members each have their own series. Above, gauges show quantiles over members (label member =
// "min", "median", "max") and counters the population's sum (member = "all"), so that a sweep does not flood
// Prometheus. One thread feeds it (the training thread), except SetSubscribers.
#ifndef DATACOM_LEARNER_LEARNER_METRICS_H_
#define DATACOM_LEARNER_LEARNER_METRICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/metrics/metrics.h"
#include "common/records/evaluation_means.h"
#include "datacom/v1/checkpoint.pb.h"
#include "datacom/v1/replay.pb.h"
#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

class LearnerMetrics {
 public:
  static constexpr int kMaxMembers = 128;
  LearnerMetrics(Metrics* metrics, int members);

  void Update(double seconds);
  void Waited(double seconds, bool for_draw);
  void Published(int snapshots);
  void Checkpointed(double seconds);
  void SetPendingEvaluations(uint32_t items);
  void SetSubscribers(int count);  // thread-safe
  void Episode(int member, const v1::Episode& episode);
  void Evaluated(int member, const EvaluationMeans& means);
  void SetBudget(int member, double cost_budget);
  // Of all members: the rows seen and the algorithm's current values.
  void Refresh(uint64_t env_steps, const Stats& stats);

 private:
  // A gauge a member, or three quantiles of them.
  class MemberGauge {
   public:
    MemberGauge(Metrics* metrics, const std::string& name, int members);
    void Set(int member, double value);

   private:
    std::vector<prometheus::Gauge*> gauges_;
    std::vector<double> values_;
    bool quantiles_ = false;
  };
  class MemberCounter {
   public:
    MemberCounter(Metrics* metrics, const std::string& name, int members);
    void Add(int member, double value) { counters_[counters_.size() == 1 ? 0 : member]->Increment(value); }

   private:
    std::vector<prometheus::Counter*> counters_;
  };

  prometheus::Counter& updates_;
  prometheus::Histogram& update_seconds_;
  prometheus::Counter& wait_draw_;
  prometheus::Counter& wait_features_;
  prometheus::Counter& published_;
  prometheus::Counter& checkpoints_;
  prometheus::Histogram& checkpoint_seconds_;
  prometheus::Gauge& checkpoint_time_;
  prometheus::Gauge& pending_;
  prometheus::Gauge& subscribers_;
  prometheus::Gauge& diverged_;
  MemberGauge env_steps_, budget_, return_, delta_, cvar_, alpha_, eval_return_, eval_violation_, eval_cost_,
      eval_abandoned_;
  MemberCounter episodes_, violations_, cost_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_LEARNER_METRICS_H_
