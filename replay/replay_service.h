// The replay service over gRPC: connects streams to the store. The protocol is in proto/datacom/v1/replay.proto.
//
// Callback API: no call holds a thread while it waits. Every stream has at most one read and one write in flight. When
// a stream can write, it takes the newest state from the store, so that nothing queues up behind a slow reader.
// Thread-safe. Must outlive the server it is registered with; call Drain before the server shuts down.
#ifndef DATACOM_REPLAY_REPLAY_SERVICE_H_
#define DATACOM_REPLAY_REPLAY_SERVICE_H_

#include <atomic>
#include <chrono>
#include <thread>

#include "common/base/mutex.h"
#include "common/metrics/metrics.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "replay/store.h"
#include "replay/streams.h"

namespace datacom::replay {

class ReplayService : public v1::Replay::CallbackService {
 public:
  // `tick_period` 0: no thread calls Tick (tests call it).
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
  grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context, const v1::FinishRequest* request,
                                   v1::FinishReply* reply) override;

  bool finished() const { return finished_; }  // the learner has finished the run
  // Calls Store::Tick, logs its errors and ticks the streams, which then send wait messages.
  void Tick();
  void Drain() { streams_.Drain(); }  // see OpenStreams
  OpenStreams& streams() { return streams_; }

 private:
  void CommitLoop();
  void TickLoop(std::chrono::milliseconds period);

  Store* const store_;
  OpenStreams streams_;
  Mutex mutex_;
  CondVar stop_changed_;
  absl::Status tick_status_ ABSL_GUARDED_BY(mutex_);  // result of the newest Store::Tick; logged when it changes
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> finished_ = false;
  std::thread ticker_;
  std::thread committer_;  // with replay.sync
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_REPLAY_SERVICE_H_
// SPDX-License-Identifier: Apache-2.0
