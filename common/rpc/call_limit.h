// Finds the connections that begin too many calls. gRPC 1.51 makes a call of every stream that a peer opens, also when
// the peer resets it at once ("rapid reset", CVE-2023-44487), each takes 20 KB until it has ended, and they are made
// faster than they end.
//
// When more than `limit` calls have begun within a second,
//   - every connection is reset that had received no message when the second began. Connections of the roles have
//     received one then, and the others of a flood are reset before gRPC has read what the kernel holds of them;
//   - every other connection is reset that has begun more than its share of the calls, the limit over the connections
//     that began any, and more than kCalls.
// For kDisgrace afterwards the address of a connection that was reset may open only kNewConnections a second.
//
// CallLimit is not thread-safe. Nothing blocks.
#ifndef DATACOM_COMMON_RPC_CALL_LIMIT_H_
#define DATACOM_COMMON_RPC_CALL_LIMIT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace grpc {
class Server;
}  // namespace grpc

namespace datacom {

// How many calls have begun on a gRPC server, as gRPC itself counts them when it reads a stream's header (channelz).
// Thread-safe.
class CallCounts {
 public:
  // Starts a server with `start` and counts its calls; starts one at a time. Null: `start` returned null.
  static std::unique_ptr<grpc::Server> Of(const std::function<std::unique_ptr<grpc::Server>()>& start,
                                          CallCounts* counts);

  struct Connection {
    uint64_t calls = 0;     // begun
    uint64_t messages = 0;  // received
  };
  using ByPeer = std::map<std::string, Connection>;  // by PlainPeer (common/rpc/listener.h)

  uint64_t Begun() const;
  ByPeer Connections() const;  // those that are open; takes tens of microseconds for each

 private:
  int64_t server_ = 0;  // channelz's number of it
};

class CallLimit {
 public:
  static constexpr uint64_t kCalls = 20;  // the run's peers begin one for a stream, a lease or a report
  static constexpr uint32_t kNewConnections = 10;
  static constexpr std::chrono::seconds kDisgrace{10};

  // The open connections of a server; peers as PlainPeer names them.
  struct Connections {
    std::function<std::vector<std::string>()> peers;
    std::function<CallCounts::ByPeer()> counts;  // slower than `peers`
    std::function<void(const std::vector<std::string>&)> reset;
  };
  // `clock` outlives this object.
  CallLimit(uint64_t limit, const Clock* clock, Connections connections)
      : limit_(limit), clock_(clock), connections_(std::move(connections)) {}

  // `begun`: all calls so far. Call it every few milliseconds, less often while few calls begin; asks for the counts
  // once a second and beyond the limit.
  void Tick(uint64_t begun);

  // Counts a new connection from an address (AddressOf, common/rpc/listener.h). False: it is to be refused.
  bool AdmitsConnection(const std::string& address);

  // Whether addresses are still in disgrace.
  bool Disgraced();

 private:
  struct Disgrace {
    Clock::Time end;
    uint32_t connections = 0;  // new ones since `second`
    Clock::Time second;
  };
  void Forgive();
  void Reset(const std::vector<std::string>& peers);

  const uint64_t limit_;
  const Clock* const clock_;
  const Connections connections_;
  Clock::Time second_;                                   // when it began
  uint64_t begun_ = 0;                                   // before it
  CallCounts::ByPeer counts_;                            // when it began
  std::unordered_map<std::string, Disgrace> disgraced_;  // by address
};

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_CALL_LIMIT_H_
// SPDX-License-Identifier: Apache-2.0
