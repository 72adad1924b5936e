// Finds the connections that begin too many calls. gRPC 1.51 makes a call of every stream that a peer opens, also when
// the peer resets it at once ("rapid reset", CVE-2023-44487), each takes 20 KB until it has ended, and they are made
// faster than they end.
//
// When more than `limit` calls have begun within a second, every connection is to be reset that has begun more than its
// share of them, the limit over the connections that began any, and more than kCalls. For kDisgrace afterwards its
// address may open only kNewConnections a second.
//
// Not thread-safe. Nothing blocks.
#ifndef DATACOM_COMMON_RPC_CALL_LIMIT_H_
#define DATACOM_COMMON_RPC_CALL_LIMIT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/clock.h"

namespace datacom {

class CallLimit {
 public:
  static constexpr uint64_t kCalls = 20;  // the run's peers begin one for a stream, a lease or a report
  static constexpr uint32_t kNewConnections = 10;
  static constexpr std::chrono::seconds kDisgrace{10};
  using ByPeer = std::map<std::string, uint64_t>;  // calls of each open connection, by peer as gRPC names it

  // `clock` outlives this object.
  CallLimit(uint64_t limit, const Clock* clock) : limit_(limit), clock_(clock) {}

  // `begun`: all calls so far. `by_peer` is asked for those of the open connections, at least once a second. Returns
  // the peers whose connections are to be reset. Call it every few milliseconds.
  std::vector<std::string> Tick(uint64_t begun, const std::function<ByPeer()>& by_peer);

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

  const uint64_t limit_;
  const Clock* const clock_;
  Clock::Time second_;                                   // when it began
  uint64_t begun_ = 0;                                   // before it
  ByPeer by_peer_;                                       // the same
  std::unordered_map<std::string, Disgrace> disgraced_;  // by address
};

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_CALL_LIMIT_H_
// SPDX-License-Identifier: Apache-2.0
