// The replay's metric series. Thread-safe. Update takes a copy of the store's counters and does not lock the store. The
// Metrics object must outlive this one.
#ifndef DATACOM_REPLAY_REPLAY_METRICS_H_
#define DATACOM_REPLAY_REPLAY_METRICS_H_

#include <string>

#include "common/base/files.h"
#include "common/base/mutex.h"
#include "common/metrics/metrics.h"
#include "replay/store.h"

namespace datacom::replay {

class ReplayMetrics {
 public:
  ReplayMetrics(Metrics* metrics, const std::string& folder) : metrics_(metrics), folder_(folder) {}
  void ObserveInsert(double seconds) { insert_seconds_.Observe(seconds); }
  void ObserveDraw(double seconds) { draw_seconds_.Observe(seconds); }
  // `seconds`: time since the last call, counted as blocked time of each side that waits.
  void Update(const StoreCounters& now, double seconds) {
    MutexLock lock(&mutex_);
    const auto add = [](prometheus::Counter& counter, uint64_t from, uint64_t to) {
      if (to > from) counter.Increment(static_cast<double>(to - from));
    };
    add(inserts_, last_.inserted, now.inserted);
    add(duplicates_, last_.duplicates, now.duplicates);
    add(invalid_, last_.rejected_invalid, now.rejected_invalid);
    add(gap_, last_.rejected_gap, now.rejected_gap);
    add(credit_, last_.rejected_credit, now.rejected_credit);
    add(finished_, last_.finished_episodes, now.finished_episodes);
    add(abandoned_, last_.abandoned_episodes, now.abandoned_episodes);
    add(draws_, last_.draws, now.draws);
    if (now.actors_wait) insert_blocked_.Increment(seconds);
    if (now.learner_waits) draw_blocked_.Increment(seconds);
    main_rows_.Set(static_cast<double>(now.held));
    failure_rows_.Set(static_cast<double>(now.failures));
    outstanding_.Set(static_cast<double>(now.outstanding));
    sessions_.Set(static_cast<double>(now.sessions));
    ratio_error_.Set(now.ratio_error);
    const auto free = FreeBytes(folder_);
    if (free.ok()) disk_free_.Set(static_cast<double>(*free));
    last_ = now;
  }

 private:
  Metrics* const metrics_;
  const std::string folder_;
  prometheus::Gauge& main_rows_ = metrics_->gauge("datacom_replay_rows", {{"table", "main"}});
  prometheus::Gauge& failure_rows_ = metrics_->gauge("datacom_replay_rows", {{"table", "failure"}});
  prometheus::Counter& inserts_ = metrics_->counter("datacom_replay_inserts_total");
  prometheus::Counter& duplicates_ = metrics_->counter("datacom_replay_duplicate_rows_total");
  prometheus::Counter& invalid_ = metrics_->counter("datacom_replay_rejected_rows_total", {{"reason", "invalid"}});
  prometheus::Counter& gap_ = metrics_->counter("datacom_replay_rejected_rows_total", {{"reason", "gap"}});
  prometheus::Counter& credit_ = metrics_->counter("datacom_replay_rejected_rows_total", {{"reason", "credit"}});
  prometheus::Counter& finished_ = metrics_->counter("datacom_replay_episodes_total", {{"state", "finished"}});
  prometheus::Counter& abandoned_ = metrics_->counter("datacom_replay_episodes_total", {{"state", "abandoned"}});
  prometheus::Gauge& outstanding_ = metrics_->gauge("datacom_replay_outstanding_rows");
  prometheus::Gauge& sessions_ = metrics_->gauge("datacom_replay_sessions");
  prometheus::Histogram& insert_seconds_ = metrics_->histogram("datacom_replay_insert_seconds");
  prometheus::Histogram& draw_seconds_ = metrics_->histogram("datacom_replay_draw_seconds");
  prometheus::Counter& draws_ = metrics_->counter("datacom_replay_draws_total");
  prometheus::Counter& insert_blocked_ =
      metrics_->counter("datacom_replay_blocked_seconds_total", {{"side", "insert"}});
  prometheus::Counter& draw_blocked_ = metrics_->counter("datacom_replay_blocked_seconds_total", {{"side", "draw"}});
  prometheus::Gauge& ratio_error_ = metrics_->gauge("datacom_replay_samples_per_insert_error_ratio");
  prometheus::Gauge& disk_free_ = metrics_->gauge("datacom_replay_disk_free_bytes");
  Mutex mutex_;
  StoreCounters last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_REPLAY_METRICS_H_
// SPDX-License-Identifier: Apache-2.0
