#include "replay/replay_metrics.h"

#include "common/base/files.h"

namespace datacom::replay {

void ReplayMetrics::Update(const StoreCounters& now, double seconds) {
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

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
