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
#ifndef DATACOM_LEARNER_SUBSCRIPTIONS_H_
#define DATACOM_LEARNER_SUBSCRIPTIONS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "datacom/v1/learner.pb.h"
#include "grpcpp/grpcpp.h"
#include "learner/snapshot_hub.h"

namespace datacom::learner {

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
  int count() const;

 private:
  class Stream;
  void WakeStreams();
  // Cancels streams until the others keep no more replaced snapshots alive than they may.
  void CancelIdlest(const std::vector<std::shared_ptr<Stream>>& streams);
  void Remove(Stream* stream);

  SnapshotHub& hub_;
  const int limit_;
  const std::function<void(int)> on_count_;
  mutable Mutex mutex_;
  std::map<Stream*, std::shared_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> chunks_{0};  // begun by all streams
  std::thread thread_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_SUBSCRIPTIONS_H_
// SPDX-License-Identifier: Apache-2.0
