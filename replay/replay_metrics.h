// The replay's metric series. Thread-safe. Without a Metrics object every call does nothing. Update takes a copy of the
// store's counters and does not lock the store.
#ifndef DATACOM_REPLAY_REPLAY_METRICS_H_
#define DATACOM_REPLAY_REPLAY_METRICS_H_

#include <memory>

#include "common/base/mutex.h"
#include "common/metrics/metrics.h"
#include "replay/store.h"

namespace datacom::replay {

class ReplayMetrics {
 public:
  ReplayMetrics(Metrics* metrics, const std::string& folder);
  void ObserveInsert(double seconds);
  void ObserveDraw(double seconds);
  // `seconds`: time since the last call, counted as blocked time of each side that waits.
  void Update(const StoreCounters& now, double seconds);

 private:
  struct Series;
  const std::string folder_;
  std::shared_ptr<Series> series_;
  Mutex mutex_;
  StoreCounters last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_REPLAY_METRICS_H_
// SPDX-License-Identifier: Apache-2.0
