// The replay's series, looked up once. Thread-safe; without a Metrics object every call does nothing. Update takes no
// lock of the store: it is handed a copy of the counters.
#ifndef DATACOM_REPLAY_REPLAY_METRICS_H_
#define DATACOM_REPLAY_REPLAY_METRICS_H_

#include <memory>

#include "common/base/mutex.h"
#include "common/metrics/metrics.h"
#include "replay/store.h"

namespace datacom {

class ReplayMetrics {
 public:
  ReplayMetrics(Metrics* metrics, const std::string& folder);
  void ObserveInsert(double seconds);
  void ObserveDraw(double seconds);
  // `seconds` since the last call; during them actors or the learner waited for the other side.
  void Update(const StoreCounters& now, double seconds, bool actors_wait, bool learner_waits);

 private:
  struct Series;
  const std::string folder_;
  std::shared_ptr<Series> series_;
  Mutex mutex_;
  StoreCounters last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace datacom

#endif  // DATACOM_REPLAY_REPLAY_METRICS_H_
