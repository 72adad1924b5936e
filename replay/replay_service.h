// The replay service over gRPC: connects streams to the store. The protocol is in proto/datacom/v1/replay.proto.
//
// Callback API: no call holds a thread while it waits. Every stream has at most one read and one write in flight. When
// a stream can write, it takes the newest state from the store, so that nothing queues up behind a slow reader.
// Thread-safe. Must outlive the server it is registered with; call Drain before the server shuts down.
#ifndef DATACOM_REPLAY_REPLAY_SERVICE_H_
#define DATACOM_REPLAY_REPLAY_SERVICE_H_

#include <memory>
#include <set>
#include <thread>

#include "common/base/mutex.h"
#include "common/metrics/metrics.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "replay/replay_metrics.h"
#include "replay/store.h"

namespace datacom::replay {

// A stream that is notified when the store changes.
class StoreListener {
 public:
  virtual ~StoreListener() = default;
  virtual void OnChange() = 0;                         // anything may have changed; must not block
  virtual void OnTick() = 0;                           // some time passed
  virtual void Close(const grpc::Status& status) = 0;  // end the stream after the write in flight
};

class ReplayService : public v1::Replay::CallbackService {
 public:
  // `metrics` may be null. `tick_period` 0: no thread calls Tick (tests call it).
  ReplayService(Store* store, Metrics* metrics, std::chrono::milliseconds tick_period);
  ~ReplayService() override;

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context, const v1::RegisterRequest* request,
                                     v1::RegisterReply* reply) override;
  grpc::ServerBidiReactor<v1::InsertRequest, v1::InsertReply>* Insert(grpc::CallbackServerContext* context) override;
  grpc::ServerBidiReactor<v1::DrawRequest, v1::DrawReply>* Draw(grpc::CallbackServerContext* context) override;
  grpc::ServerWriteReactor<v1::RowRange>* ReadRange(grpc::CallbackServerContext* context,
                                                    const v1::ReadRangeRequest* request) override;
  grpc::ServerUnaryReactor* Info(grpc::CallbackServerContext* context, const v1::ReplayInfoRequest* request,
                                 v1::ReplayInfo* reply) override;

  // Calls Store::Tick, logs its errors and ticks the streams, which then send wait messages.
  void Tick();
  // Accepts no more rows, actors or learners, commits what is staged, sends what is committed and ends the streams with
  // UNAVAILABLE. Idempotent. Blocks on the disk with replay.sync.
  void Drain();
  bool draining() const;
  Store* store() { return store_; }
  ReplayMetrics* metrics() { return metrics_.get(); }

  // For streams.
  void Add(const std::shared_ptr<StoreListener>& listener);
  void Remove(StoreListener* listener);
  void NotifyAll();
  absl::Status CheckOpen() const;  // UNAVAILABLE while draining and after the disk failed

 private:
  std::vector<std::shared_ptr<StoreListener>> Listeners() const;
  void CommitLoop();
  void TickLoop(std::chrono::milliseconds period);

  Store* const store_;
  const std::unique_ptr<ReplayMetrics> metrics_;
  mutable Mutex mutex_;
  CondVar stop_changed_;
  std::map<StoreListener*, std::shared_ptr<StoreListener>> listeners_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status tick_status_ ABSL_GUARDED_BY(mutex_);  // of the newest Store::Tick; logged when it changes
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread ticker_;
  std::thread committer_;  // with replay.sync
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_REPLAY_SERVICE_H_
