#include "replay/replay_metrics.h"

#include "common/base/files.h"

namespace datacom::replay {

struct ReplayMetrics::Series {
  explicit Series(Metrics* metrics) : m(metrics) {}

  Metrics* const m;
  prometheus::Gauge& main_rows = m->gauge("datacom_replay_rows", {{"table", "main"}});
  prometheus::Gauge& failure_rows = m->gauge("datacom_replay_rows", {{"table", "failure"}});
  prometheus::Counter& inserts = m->counter("datacom_replay_inserts_total");
  prometheus::Counter& duplicates = m->counter("datacom_replay_duplicate_rows_total");
  prometheus::Counter& invalid = m->counter("datacom_replay_rejected_rows_total", {{"reason", "invalid"}});
  prometheus::Counter& gap = m->counter("datacom_replay_rejected_rows_total", {{"reason", "gap"}});
  prometheus::Counter& credit = m->counter("datacom_replay_rejected_rows_total", {{"reason", "credit"}});
  prometheus::Counter& finished = m->counter("datacom_replay_episodes_total", {{"state", "finished"}});
  prometheus::Counter& abandoned = m->counter("datacom_replay_episodes_total", {{"state", "abandoned"}});
  prometheus::Gauge& outstanding = m->gauge("datacom_replay_outstanding_rows");
  prometheus::Gauge& sessions = m->gauge("datacom_replay_sessions");
  prometheus::Histogram& insert_seconds = m->histogram("datacom_replay_insert_seconds");
  prometheus::Histogram& draw_seconds = m->histogram("datacom_replay_draw_seconds");
  prometheus::Counter& draws = m->counter("datacom_replay_draws_total");
  prometheus::Counter& insert_blocked = m->counter("datacom_replay_blocked_seconds_total", {{"side", "insert"}});
  prometheus::Counter& draw_blocked = m->counter("datacom_replay_blocked_seconds_total", {{"side", "draw"}});
  prometheus::Gauge& ratio_error = m->gauge("datacom_replay_samples_per_insert_error_ratio");
  prometheus::Gauge& disk_free = m->gauge("datacom_replay_disk_free_bytes");
};

ReplayMetrics::ReplayMetrics(Metrics* metrics, const std::string& folder)
    : folder_(folder), series_(metrics == nullptr ? nullptr : std::make_shared<Series>(metrics)) {}

void ReplayMetrics::ObserveInsert(double seconds) {
  if (series_ != nullptr) series_->insert_seconds.Observe(seconds);
}

void ReplayMetrics::ObserveDraw(double seconds) {
  if (series_ != nullptr) series_->draw_seconds.Observe(seconds);
}

void ReplayMetrics::Update(const StoreCounters& now, double seconds) {
  if (series_ == nullptr) return;
  MutexLock lock(&mutex_);
  const auto add = [](prometheus::Counter& counter, uint64_t from, uint64_t to) {
    if (to > from) counter.Increment(static_cast<double>(to - from));
  };
  add(series_->inserts, last_.inserted, now.inserted);
  add(series_->duplicates, last_.duplicates, now.duplicates);
  add(series_->invalid, last_.rejected_invalid, now.rejected_invalid);
  add(series_->gap, last_.rejected_gap, now.rejected_gap);
  add(series_->credit, last_.rejected_credit, now.rejected_credit);
  add(series_->finished, last_.finished_episodes, now.finished_episodes);
  add(series_->abandoned, last_.abandoned_episodes, now.abandoned_episodes);
  add(series_->draws, last_.draws, now.draws);
  if (now.actors_wait) series_->insert_blocked.Increment(seconds);
  if (now.learner_waits) series_->draw_blocked.Increment(seconds);
  series_->main_rows.Set(static_cast<double>(now.held));
  series_->failure_rows.Set(static_cast<double>(now.failures));
  series_->outstanding.Set(static_cast<double>(now.outstanding));
  series_->sessions.Set(static_cast<double>(now.sessions));
  series_->ratio_error.Set(now.ratio_error);
  const auto free = FreeBytes(folder_);
  if (free.ok()) series_->disk_free.Set(static_cast<double>(*free));
  last_ = now;
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
