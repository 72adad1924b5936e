// An actor's session with the replay service (protocol: proto/datacom/v1/replay.proto, rpc Register and Insert).
//
// It registers, keeps the insert stream open over reconnects, and sends again what the replay has not acknowledged. The
// replay decides which members the session serves, and may change that at any time.
// Thread-safe. A background thread owns the stream. Functions block only where stated; wait on Options::changes.
#ifndef DATACOM_COMMON_RPC_INSERT_SESSION_H_
#define DATACOM_COMMON_RPC_INSERT_SESSION_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/changes.h"
#include "datacom/v1/replay.pb.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace datacom {

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
    // Reports new credit, a new assignment, and what finished() and status() say; not acknowledgements.
    std::shared_ptr<Changes> changes = std::make_shared<Changes>();
  };
  // Blocks until registered, the deadline, a permanent rejection or process stop (CANCELLED).
  static absl::StatusOr<std::unique_ptr<InsertSession>> Register(const Options& options);
  virtual ~InsertSession() = default;

  virtual const v1::RegisterReply& registration() const = 0;
  // Starts the stream, once the caller knows the row schema (from the experiment in the registration).
  virtual absl::Status Start(uint64_t schema_fingerprint) = 0;

  // The newest assignment: the members that the session serves, and how many lanes act for each.
  virtual std::shared_ptr<const v1::Assignment> assignment() const = 0;
  // The caller has appended all rows of a member that has 0 lanes in `assignment`. Once they are acknowledged, the
  // replay is told, and the member leaves the assignment. No effect when there is a newer assignment.
  virtual void Release(uint32_t member, uint64_t assignment) = 0;

  struct Allowance {
    uint64_t rows = 0;           // may be produced now: credit limit - next_sequence
    uint64_t next_sequence = 0;  // sequence of the next row that is appended
    uint64_t min_policy_update = 0;
  };
  virtual Allowance allowance(uint32_t member) const = 0;
  // Queues rows [next_sequence, next_sequence + rows); columns and fault as in proto Chunk. Never blocks; the credit
  // bounds the queue. FAILED_PRECONDITION when the session ended (register again).
  virtual absl::Status Append(uint32_t member, uint32_t rows, std::string columns, const std::string& fault) = 0;
  // Lets the background thread send what was appended. One call for the rows of many members wakes each process once.
  // Flush and Release send, too.
  virtual void Send() = 0;
  virtual uint64_t acknowledged(uint32_t member) const = 0;  // next_sequence that the replay confirmed
  virtual Changes& changes() = 0;                            // Options::changes, to wait on
  // Sends, and blocks until everything appended is acknowledged, the session ended, or the timeout (DEADLINE_EXCEEDED
  // with the count left).
  virtual absl::Status Flush(std::chrono::milliseconds timeout) = 0;
  virtual bool finished() const = 0;  // the run has all its rows
  // OK while usable; NOT_FOUND: session ended, register again; otherwise permanent.
  virtual absl::Status status() const = 0;
  virtual std::string waiting_for() const = 0;  // the replay's wait message; empty when there is credit
};

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_INSERT_SESSION_H_
// SPDX-License-Identifier: Apache-2.0
