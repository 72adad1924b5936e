// The replay service as the learner and tools call it (protocol: proto/datacom/v1/replay.proto). Actors use
// insert_session.h.
#ifndef DATACOM_COMMON_RPC_REPLAY_CLIENT_H_
#define DATACOM_COMMON_RPC_REPLAY_CLIENT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "datacom/v1/replay.pb.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace datacom {

// The learner's draws, in order, over reconnects: unanswered requests are sent again.
// One thread calls Request and Next; another may call Announce. Next blocks.
class DrawStream {
 public:
  struct Options {
    std::shared_ptr<grpc::Channel> channel;
    std::string run_id;
    uint64_t schema_fingerprint = 0;
    uint32_t incarnation = 1;   // of the learner; Next returns ALREADY_EXISTS when a larger one draws
    uint64_t replay_start = 0;  // the newest start of the replay that the learner's state has seen; 0: none
  };
  static std::unique_ptr<DrawStream> Open(const Options& options);
  virtual ~DrawStream() = default;
  // Requests the batch of `update`; replies come in the order of requests. Any number may be outstanding.
  // With many on the way, requests wait for the next announcement and travel with it.
  virtual void Request(uint64_t update) = 0;
  virtual void Announce(uint64_t completed_update) = 0;
  // The next draw, with the batches of all its replies. DEADLINE_EXCEEDED after `timeout` (message: the replay's
  // waiting_for, or that it cannot be reached); CANCELLED after Cancel; permanent errors as they are. Requests stay
  // outstanding on a timeout.
  virtual absl::StatusOr<v1::DrawReply> Next(std::chrono::milliseconds timeout) = 0;
  // The newest start of the replay that has replied (proto DrawReply), or Options::replay_start; 0 without a replay.
  // Callable from any thread.
  virtual uint64_t replay_start() const { return 0; }
  virtual void Cancel() = 0;  // ends this and every later Next; callable from any thread
};

absl::StatusOr<v1::ReplayInfo> GetReplayInfo(const std::shared_ptr<grpc::Channel>& channel,
                                             std::chrono::milliseconds deadline);
// Tells the replay that the run is finished (proto Finish).
absl::Status FinishRun(const std::shared_ptr<grpc::Channel>& channel, const v1::FinishRequest& request,
                       std::chrono::milliseconds deadline);
// Calls `consume` for each message in order until all of [from, to) arrived. DEADLINE_EXCEEDED when that takes longer;
// UNAVAILABLE when the replay cannot be reached or the call broke; errors of `consume`; the permanent errors of proto
// ReadRange.
absl::Status ReadRange(const std::shared_ptr<grpc::Channel>& channel, const v1::ReadRangeRequest& request,
                       std::chrono::milliseconds deadline,
                       const std::function<absl::Status(const v1::RowRange&)>& consume);

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_REPLAY_CLIENT_H_
// SPDX-License-Identifier: Apache-2.0
