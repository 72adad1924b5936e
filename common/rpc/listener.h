// Accepts a server's TCP connections instead of gRPC, which takes every one. Thread-safe; Bind blocks while a host name
// is resolved.
#ifndef DATACOM_COMMON_RPC_LISTENER_H_
#define DATACOM_COMMON_RPC_LISTENER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"

namespace datacom {

class Listener {
 public:
  // Listens on host:port; port 0 picks one, and 0.0.0.0 means IPv6, too, where there is any. UNAVAILABLE, naming the
  // address, when it is in use or not one of this machine.
  static absl::StatusOr<std::unique_ptr<Listener>> Bind(const std::string& address);
  ~Listener();  // stops accepting; connections stay open
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const std::string& address() const { return address_; }  // with the port that was picked
  std::vector<std::string> Peers() const;  // of its connections that are open now, as PlainPeer names them
  static constexpr std::chrono::milliseconds kSoon{2};
  // What a thread of its own calls.
  struct Handlers {
    std::function<bool(const std::string& address)> admits;  // by AddressOf; a connection that it refuses is reset
    std::function<void(int fd)> take;                        // owns the descriptor, which does not block
    // Returns when it wants to be called again, at the latest; a new connection makes that kSoon.
    std::function<std::chrono::milliseconds()> tick = [] { return std::chrono::milliseconds(1000); };
  };
  void Start(Handlers handlers);

 private:
  Listener() = default;
  void Accept();

  std::string address_;
  uint16_t port_ = 0;
  std::vector<int> sockets_;
  int stop_ = -1;  // an eventfd that ends the thread
  Handlers handlers_;
  std::thread thread_;
};

// A peer as gRPC names it ("ipv4:10.0.0.7:4711", "ipv6:%5B::1%5D:4711"), with plain brackets. AddressOf: without its
// port.
std::string PlainPeer(const std::string& peer);
std::string AddressOf(const std::string& peer);

// Resets this process's TCP connections from these peers (PlainPeer) and drops what they have received. Returns their
// number.
int ResetConnectionsFrom(const std::vector<std::string>& peers);

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_LISTENER_H_
// SPDX-License-Identifier: Apache-2.0
