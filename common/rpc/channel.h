// Channels and servers with this project's defaults: deadlines, keepalive, message limits, backoff, health, reflection.
// Thread-safe. Nothing here blocks unless it says so.
#ifndef DATACOM_COMMON_RPC_CHANNEL_H_
#define DATACOM_COMMON_RPC_CHANNEL_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/security.h"
#include "datacom/v1/common.pb.h"

namespace grpc {
class Channel;
class Service;
class Status;
}  // namespace grpc

namespace datacom {

inline constexpr int kMaxMessageBytes = 16 << 20;
inline constexpr size_t kSnapshotChunkBytes = 1 << 20;
inline constexpr std::chrono::milliseconds kRpcDeadline{10000};  // for unary calls

// Keepalive 20 s, message limit kMaxMessageBytes, reconnect backoff 50 ms .. 2 s. Lazy: connects on first use.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const Security& security = {});

inline std::chrono::system_clock::time_point DeadlineIn(std::chrono::milliseconds duration) {
  return std::chrono::system_clock::now() + duration;
}

// The same code and message, but UNAVAILABLE for a call that the transport of a server short of memory has reset.
absl::Status FromGrpc(const grpc::Status& status);
// The same for a stream that this side wants to keep open: CANCELLED, the status of calls that a server cancels
// when it shuts down, becomes UNAVAILABLE.
absl::Status FromStreamEnd(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);
// Whether a retry may help: UNAVAILABLE, DEADLINE_EXCEEDED, ABORTED (a peer restarts), never a rejected handshake.
bool IsTransient(const absl::Status& status);

// Exponential with +-20 % jitter from a seeded stream: 50 ms, 100 ms, ... 2 s.
class Backoff {
 public:
  explicit Backoff(uint64_t seed) : seed_(seed) {}
  std::chrono::milliseconds Next();
  void Reset() { attempt_ = 0; }

 private:
  uint64_t seed_;
  int attempt_ = 0;
};

// MakeHello: the hello of this build. CheckHello: FAILED_PRECONDITION, naming both values, when run, protocol or schema
// fingerprint differ; schema_fingerprint 0 skips that check.
v1::Hello MakeHello(const std::string& run_id, uint64_t schema_fingerprint);
absl::Status CheckHello(const v1::Hello& hello, const std::string& run_id, uint64_t schema_fingerprint);

struct ServerOptions {
  Security security;
  std::string health_listen;  // a second port without TLS, for health checks only: probes speak no TLS. Empty: none
  // The limit of CallLimit. The run's peers begin a call for a stream, a lease, a report of an evaluation, or to read
  // back rows of violations.
  uint64_t calls_per_second = 500;
};

// A listening server with gRPC health and reflection; allows keepalive pings.
class Server {
 public:
  // address "127.0.0.1:0" picks a port. UNAVAILABLE, naming the address, when it is in use. Logs a warning for services
  // without TLS on an address that other machines can reach.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const std::string& address,
                                                       const std::vector<grpc::Service*>& services,
                                                       const ServerOptions& options = {});
  ~Server();                                                             // Shutdown with a grace of 1 s
  const std::string& address() const { return address_; }                // host:port actually bound
  const std::string& health_address() const { return health_address_; }  // empty without health_listen
  void SetServing(bool serving);                                         // sets the health of "" and of every service
  // Sets NOT_SERVING, then ends the calls that are left after `grace`. Blocks up to `grace`.
  void Shutdown(std::chrono::milliseconds grace);
  std::shared_ptr<grpc::Channel> InProcessChannel();

 private:
  Server() = default;
  struct Port;
  std::unique_ptr<Port> port_, health_;
  std::string address_, health_address_;
  std::vector<std::string> service_names_;
};

// Body of every binary's --healthcheck ADDRESS: OK when the server there answers SERVING within `deadline`. Blocks.
absl::Status CheckHealth(const std::string& address, std::chrono::milliseconds deadline, const Security& security = {});

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_CHANNEL_H_
// SPDX-License-Identifier: Apache-2.0
