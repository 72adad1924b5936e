// Closes connections on which calls begin faster than any peer of a run begins them.
//
// gRPC 1.51 makes a call of every stream that a peer opens, also when the peer resets it at once ("rapid reset",
// CVE-2023-44487), and each takes 20 KB until it has ended. Thread-safe.
#ifndef DATACOM_COMMON_RPC_CALL_LIMIT_H_
#define DATACOM_COMMON_RPC_CALL_LIMIT_H_

#include <cstdint>
#include <string>
#include <unordered_map>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace grpc {
class ServerBuilder;
}

namespace datacom {

// Counts the calls that begin on each connection within a second.
class CallLimit {
 public:
  CallLimit(uint32_t calls_per_second, const Clock* clock) : limit_(calls_per_second), clock_(clock) {}
  // Counts a call of the connection from `peer`. True for the call that reaches the limit, and again for every
  // further `calls_per_second` calls: the connection is to be closed.
  bool Reaches(const std::string& peer);

 private:
  const uint32_t limit_;
  const Clock* const clock_;
  Mutex mutex_;
  Clock::Time second_ ABSL_GUARDED_BY(mutex_);                               // when the count began
  std::unordered_map<std::string, uint32_t> calls_ ABSL_GUARDED_BY(mutex_);  // by peer
};

// Closes this process's TCP connections from `peer`, as gRPC names it ("ipv4:10.0.0.7:4711", "ipv6:%5B::1%5D:4711").
// Returns their number.
int CloseConnectionsFrom(const std::string& peer);

// Limits the concurrent streams of each connection of the server, and the calls that begin on it within a second.
void LimitCalls(grpc::ServerBuilder* builder, const Clock* clock);

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_CALL_LIMIT_H_
// SPDX-License-Identifier: Apache-2.0
