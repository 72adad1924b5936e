// How many calls have begun on a gRPC server, as gRPC itself counts them when it reads a stream's header (channelz).
// Thread-safe. Nothing here blocks.
#ifndef DATACOM_COMMON_RPC_CALL_COUNTS_H_
#define DATACOM_COMMON_RPC_CALL_COUNTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace grpc {
class Server;
}  // namespace grpc

namespace datacom {

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

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_CALL_COUNTS_H_
// SPDX-License-Identifier: Apache-2.0
