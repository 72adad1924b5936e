// The actor's metric series (common/metrics). The references are valid as long as the Metrics object.
#ifndef DATACOM_ACTOR_ACTOR_METRICS_H_
#define DATACOM_ACTOR_ACTOR_METRICS_H_

#include "common/metrics/metrics.h"

namespace datacom::actor {

struct ActorMetrics {
  explicit ActorMetrics(Metrics* metrics)
      : env_steps(metrics->counter("datacom_actor_env_steps_total")),
        rows(metrics->counter("datacom_actor_rows_total")),
        episodes(metrics->counter("datacom_actor_episodes_total")),
        abandoned_invalid(metrics->counter("datacom_actor_abandoned_episodes_total", {{"reason", "invalid"}})),
        abandoned_session(metrics->counter("datacom_actor_abandoned_episodes_total", {{"reason", "session"}})),
        wait_credit(metrics->counter("datacom_actor_wait_seconds_total", {{"reason", "credit"}})),
        wait_snapshot(metrics->counter("datacom_actor_wait_seconds_total", {{"reason", "snapshot"}})),
        wait_register(metrics->counter("datacom_actor_wait_seconds_total", {{"reason", "register"}})),
        snapshot_age(metrics->gauge("datacom_actor_snapshot_age_seconds")),
        policy_lag(metrics->gauge("datacom_actor_policy_lag_updates")),
        safe_map(metrics->histogram("datacom_actor_safe_map_seconds")),
        step(metrics->histogram("datacom_actor_step_seconds")),
        intervention(metrics->histogram("datacom_actor_filter_intervention")),
        discarded(metrics->counter("datacom_actor_snapshots_discarded_total")),
        environments(metrics->gauge("datacom_actor_environments")) {}

  prometheus::Counter& env_steps;
  prometheus::Counter& rows;
  prometheus::Counter& episodes;
  prometheus::Counter& abandoned_invalid;
  prometheus::Counter& abandoned_session;
  prometheus::Counter& wait_credit;
  prometheus::Counter& wait_snapshot;
  prometheus::Counter& wait_register;
  prometheus::Gauge& snapshot_age;
  prometheus::Gauge& policy_lag;
  prometheus::Histogram& safe_map;
  prometheus::Histogram& step;
  prometheus::Histogram& intervention;
  prometheus::Counter& discarded;
  prometheus::Gauge& environments;
};

}  // namespace datacom::actor

#endif  // DATACOM_ACTOR_ACTOR_METRICS_H_
// SPDX-License-Identifier: Apache-2.0
