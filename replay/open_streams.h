// The streams that a replay's peers have open, and what the streams share: the store, the metrics, and whether the
// replay still accepts rows. The service owns it; the streams and the service notify each other through it.
// Thread-safe; shares the ownership of each stream until Remove. NotifyAll and TickAll run in the caller's thread;
// Drain blocks on the disk with replay.sync.
#ifndef DATACOM_REPLAY_OPEN_STREAMS_H_
#define DATACOM_REPLAY_OPEN_STREAMS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/metrics/metrics.h"
#include "replay/replay_metrics.h"
#include "replay/store.h"

namespace datacom::replay {

// A stream that is notified when the store changes.
class StoreListener {
 public:
  virtual ~StoreListener() = default;
  virtual void OnChange() = 0;                         // anything may have changed; must not block
  virtual void OnTick() = 0;                           // some time passed
  virtual void Close(const absl::Status& status) = 0;  // end the stream after the write in flight
};

class OpenStreams {
 public:
  // `metrics` may be null.
  OpenStreams(Store* store, Metrics* metrics) : store_(store), metrics_(metrics, store->options().folder) {}

  Store* store() { return store_; }
  ReplayMetrics* metrics() { return &metrics_; }
  void Add(const std::shared_ptr<StoreListener>& listener);
  void Remove(StoreListener* listener);
  void NotifyAll();
  void TickAll();
  absl::Status CheckOpen() const;  // UNAVAILABLE while draining and after the disk failed
  bool draining() const;
  // Accepts no more rows, actors or learners, commits what is staged, sends what is committed and ends the streams with
  // UNAVAILABLE. Idempotent.
  void Drain();

 private:
  std::vector<std::shared_ptr<StoreListener>> Listeners() const;

  Store* const store_;
  ReplayMetrics metrics_;
  mutable Mutex mutex_;
  std::map<StoreListener*, std::shared_ptr<StoreListener>> listeners_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_OPEN_STREAMS_H_
// SPDX-License-Identifier: Apache-2.0
