// Clients of the replay service for actors and the learner (protocol: proto/datacom/v1/replay.proto).
#ifndef DATACOM_COMMON_RPC_REPLAY_CLIENT_H_
#define DATACOM_COMMON_RPC_REPLAY_CLIENT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/changes.h"
#include "datacom/v1/replay.pb.h"
#include "grpcpp/grpcpp.h"

namespace datacom {

// An actor's session: registers, keeps the insert stream open over reconnects, resends unacknowledged rows.
// Thread-safe. A background thread owns the stream. Functions block only where stated; wait on Options::changes.
class InsertSession {
 public:
  struct Options {
    std::shared_ptr<grpc::Channel> channel;
    std::string run_id;
    std::string actor;         // name, stable over restarts
    uint64_t incarnation = 0;  // random per process start
    uint32_t environments = 1;
    uint64_t schema_fingerprint = 0;                     // 0: not known before registration; Start gets it then
    std::chrono::milliseconds register_deadline{60000};  // retried with backoff until then
    // Reports every reply of the replay and the end of the session.
    std::shared_ptr<Changes> changes = std::make_shared<Changes>();
  };
  // Blocks until registered, the deadline, a permanent rejection or process stop (CANCELLED).
  static absl::StatusOr<std::unique_ptr<InsertSession>> Register(const Options& options);
  virtual ~InsertSession() = default;

  virtual const v1::RegisterReply& registration() const = 0;
  // Starts the stream, once the caller knows the row schema (from the experiment in the registration).
  virtual absl::Status Start(uint64_t schema_fingerprint) = 0;

  struct Allowance {
    uint64_t rows = 0;           // may be produced now: credit limit - next_sequence
    uint64_t next_sequence = 0;  // of the next row appended
    uint64_t min_policy_update = 0;
  };
  virtual Allowance allowance(uint32_t member) const = 0;
  // Queues rows [next_sequence, next_sequence + rows) for sending; columns as in proto Chunk. Never blocks; the credit
  // bounds the queue. FAILED_PRECONDITION when the session ended (register again).
  virtual absl::Status Append(uint32_t member, uint32_t rows, std::string columns) = 0;
  virtual uint64_t acknowledged(uint32_t member) const = 0;  // next_sequence that the replay confirmed
  virtual Changes& changes() = 0;                            // Options::changes, to wait on
  // Blocks until everything appended is acknowledged, the session ended, or the timeout (DEADLINE_EXCEEDED with the
  // count left).
  virtual absl::Status Flush(std::chrono::milliseconds timeout) = 0;
  virtual bool finished() const = 0;  // the run has all its rows
  // OK while usable; NOT_FOUND: session ended, register again; otherwise permanent.
  virtual absl::Status status() const = 0;
  virtual std::string waiting_for() const = 0;  // the replay's wait message; empty when there is credit
};

// The learner's draws, in order, over reconnects: unanswered requests are sent again.
// One thread calls Request and Next; another may call Announce. Next blocks.
class DrawStream {
 public:
  struct Options {
    std::shared_ptr<grpc::Channel> channel;
    std::string run_id;
    uint64_t schema_fingerprint = 0;
  };
  static std::unique_ptr<DrawStream> Open(const Options& options);
  virtual ~DrawStream() = default;
  // Requests the batch of `update`; replies come in the order of requests. Any number may be outstanding.
  virtual void Request(uint64_t update) = 0;
  virtual void Announce(uint64_t completed_update) = 0;
  // The next reply with batches. DEADLINE_EXCEEDED after `timeout` (message: the replay's waiting_for, or that it
  // cannot be reached); CANCELLED after Cancel; permanent errors as they are. Requests stay outstanding on a timeout.
  virtual absl::StatusOr<v1::DrawReply> Next(std::chrono::milliseconds timeout) = 0;
  virtual void Cancel() = 0;  // ends this and every later Next; callable from any thread
};

absl::StatusOr<v1::ReplayInfo> GetReplayInfo(const std::shared_ptr<grpc::Channel>& channel,
                                             std::chrono::milliseconds deadline);
// Calls `consume` for each message in order until all of [from, to) arrived. DEADLINE_EXCEEDED when that takes longer;
// UNAVAILABLE when the replay cannot be reached or the call broke; errors of `consume`; the permanent errors of proto
// ReadRange.
absl::Status ReadRange(const std::shared_ptr<grpc::Channel>& channel, const v1::ReadRangeRequest& request,
                       std::chrono::milliseconds deadline,
                       const std::function<absl::Status(const v1::RowRange&)>& consume);

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_REPLAY_CLIENT_H_
