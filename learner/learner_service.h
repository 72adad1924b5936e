// The learner's gRPC service, with the callback API: no call holds a thread while it waits. The conversation is in
// proto/datacom/v1/learner.proto.
//
// Subscribe: see Subscriptions. Fetch and ReadTaskFile have one chunk in flight. Fetch reads the epoch's file if that
// is not in memory, which blocks on the disk. Thread-safe. Must outlive the server that it is registered with. Close
// the hub of snapshots before the server shuts down: that ends every subscription with UNAVAILABLE.
#ifndef DATACOM_LEARNER_LEARNER_SERVICE_H_
#define DATACOM_LEARNER_LEARNER_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "datacom/v1/learner.grpc.pb.h"
#include "datacom/v1/learner.pb.h"
#include "datacom/v1/task.pb.h"
#include "grpcpp/grpcpp.h"
#include "learner/served_state.h"
#include "learner/snapshot_hub.h"

namespace datacom::learner {

// The open streams of subscribers (Subscribe in proto/datacom/v1/learner.proto), with gRPC's callback API.
//
// No stream holds a thread. One thread for all of them waits for publications and wakes the streams. Each stream has at
// most one chunk in flight. Between two snapshots it turns to the next of its members that has a newer snapshot and
// takes that member's newest. A snapshot that is published during that time waits in the hub, where the newest replaces
// the others. So a subscriber that does not read keeps one snapshot alive, which it shares with all streams that send
// the same one. The replaced snapshots that streams still send may take kOutdatedBytes, or kOutdatedSnapshots of the
// largest and one more for each member, if that is more. Beyond it, streams are cancelled: first the streams of the
// snapshot of which no chunk has been taken for the longest time. So slow readers give way only after those that do not
// read. A subscriber whose stream is cancelled may subscribe again. Thread-safe.
class Subscriptions {
 public:
  static constexpr int64_t kOutdatedBytes = 8 << 20, kOutdatedSnapshots = 16;
  using Reactor = grpc::ServerWriteReactor<grpc::ByteBuffer>;  // writes encoded SnapshotChunk messages
  // The hub must outlive this object. `on_count` is called with the number of open streams whenever that changes, in
  // order; it must not block and not call this object.
  Subscriptions(SnapshotHub& hub, int limit, std::function<void(int)> on_count);
  // Closes the hub. Every stream must be over: destroy this object after the server has shut down.
  ~Subscriptions();

  // Starts a stream for members of the hub. It ends with UNAVAILABLE when the hub is closed. A snapshot of the version
  // that the subscriber has is not sent. `context` belongs to the call. RESOURCE_EXHAUSTED: `limit` streams are open.
  absl::StatusOr<Reactor*> Open(grpc::CallbackServerContext* context, const v1::SubscribeRequest& request);

 private:
  class Stream;
  void WakeStreams();
  // Cancels streams until the others keep no more replaced snapshots alive than they may.
  void CancelIdlest(const std::vector<std::shared_ptr<Stream>>& streams);
  void Remove(Stream* stream);

  SnapshotHub& hub_;
  const int limit_;
  const std::function<void(int)> on_count_;
  Mutex mutex_;
  std::map<Stream*, std::shared_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> chunks_{0};  // begun by all streams
  std::thread thread_;
};

// Subscribe and Fetch write messages that are already encoded, so that streams share their bytes.
class LearnerService final
    : public v1::Learner::WithRawCallbackMethod_Subscribe<
          v1::Learner::WithRawCallbackMethod_Fetch<v1::Learner::WithCallbackMethod_Lease<
              v1::Learner::WithCallbackMethod_Report<v1::Learner::WithCallbackMethod_ReadTaskFile<
                  v1::Learner::WithCallbackMethod_Info<v1::Learner::Service>>>>>> {
 public:
  static constexpr int kMaxSubscribers = 1024;
  // `served` must outlive the service, whose destructor closes the hub of snapshots. `on_subscribers` gets the number
  // of subscribers whenever it changes; it must not block. Subscribers beyond `max_subscribers` are refused
  // (RESOURCE_EXHAUSTED).
  LearnerService(std::string run_id, ServedState& served, std::function<void(int)> on_subscribers,
                 int max_subscribers = kMaxSubscribers);

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Subscribe(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* Lease(grpc::CallbackServerContext* context, const v1::LeaseRequest* request,
                                  v1::LeaseReply* reply) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Fetch(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* Report(grpc::CallbackServerContext* context, const v1::ReportRequest* request,
                                   v1::ReportReply* reply) override;
  grpc::ServerWriteReactor<v1::TaskFileChunk>* ReadTaskFile(grpc::CallbackServerContext* context,
                                                            const v1::TaskFileRequest* request) override;
  grpc::ServerUnaryReactor* Info(grpc::CallbackServerContext* context, const v1::LearnerInfoRequest* request,
                                 v1::LearnerInfo* reply) override;

 private:
  absl::Status CheckRun(const v1::Hello& hello) const;

  const std::string run_id_;
  ServedState& served_;
  Subscriptions subscriptions_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_LEARNER_SERVICE_H_
// SPDX-License-Identifier: Apache-2.0
