// The actor's metric series (common/metrics). The references are valid as long as the Metrics object.
#ifndef DATACOM_ACTOR_ACTOR_METRICS_H_
#define DATACOM_ACTOR_ACTOR_METRICS_H_

#include "common/metrics/metrics.h"

namespace datacom::actor {

struct ActorMetrics {
  explicit ActorMetrics(Metrics* m) : metrics(m) {}

  Metrics* const metrics;
  prometheus::Counter& env_steps = metrics->counter("datacom_actor_env_steps_total");
  prometheus::Counter& rows = metrics->counter("datacom_actor_rows_total");
  prometheus::Counter& episodes = metrics->counter("datacom_actor_episodes_total");
  prometheus::Counter& abandoned_invalid =
      metrics->counter("datacom_actor_abandoned_episodes_total", {{"reason", "invalid"}});
  prometheus::Counter& abandoned_session =
      metrics->counter("datacom_actor_abandoned_episodes_total", {{"reason", "session"}});
  prometheus::Counter& wait_credit = metrics->counter("datacom_actor_wait_seconds_total", {{"reason", "credit"}});
  prometheus::Counter& wait_snapshot = metrics->counter("datacom_actor_wait_seconds_total", {{"reason", "snapshot"}});
  prometheus::Counter& wait_register = metrics->counter("datacom_actor_wait_seconds_total", {{"reason", "register"}});
  prometheus::Gauge& snapshot_age = metrics->gauge("datacom_actor_snapshot_age_seconds");
  prometheus::Gauge& policy_lag = metrics->gauge("datacom_actor_policy_lag_updates");
  prometheus::Histogram& safe_map = metrics->histogram("datacom_actor_safe_map_seconds");
  prometheus::Histogram& step = metrics->histogram("datacom_actor_step_seconds");
  prometheus::Histogram& intervention = metrics->histogram("datacom_actor_filter_intervention");
  prometheus::Counter& discarded = metrics->counter("datacom_actor_snapshots_discarded_total");
  prometheus::Gauge& environments = metrics->gauge("datacom_actor_environments");
};

}  // namespace datacom::actor

#endif  // DATACOM_ACTOR_ACTOR_METRICS_H_
// SPDX-License-Identifier: Apache-2.0
