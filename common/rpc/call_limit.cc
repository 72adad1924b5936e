#include "common/rpc/call_limit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/log.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/server_interceptor.h"

namespace datacom {
namespace {

// The run's peers begin a call for a stream, a lease, a report of an evaluation, or to read back rows of violations.
constexpr uint32_t kCallsPerSecond = 1000;
constexpr int kConcurrentStreams = 1000;  // of a connection; a role has a handful open

// The peer of a socket as gRPC names it, with plain brackets; empty for other sockets and files.
std::string PeerOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
    return absl::StrCat("ipv4:", text, ":", ntohs(four.sin_port));
  }
  if (address.ss_family != AF_INET6) return "";
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    ::inet_ntop(AF_INET, six.sin6_addr.s6_addr + 12, text, sizeof text);
    return absl::StrCat("ipv4:", text, ":", ntohs(six.sin6_port));
  }
  ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
  return absl::StrCat("ipv6:[", text, "]:", ntohs(six.sin6_port));
}

// gRPC asks it at the beginning of every call. It adds nothing to the calls themselves.
class Limiter : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Limiter(const Clock* clock) : limit_(kCallsPerSecond, clock) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* call) override {
    const std::string peer = call->server_context()->peer();
    if (limit_.Reaches(peer) && CloseConnectionsFrom(peer) > 0) {
      spdlog::warn("closed the connection from {}: more than {} calls began on it within a second", peer,
                   kCallsPerSecond);
    }
    return nullptr;
  }

 private:
  CallLimit limit_;
};

}  // namespace

bool CallLimit::Reaches(const std::string& peer) {
  const Clock::Time now = clock_->Now();
  MutexLock lock(&mutex_);
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    calls_.clear();
  }
  return ++calls_[peer] % limit_ == 0;
}

int CloseConnectionsFrom(const std::string& peer) {
  const std::string wanted = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}});
  int closed = 0;
  if (wanted.empty()) return closed;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    int fd = -1;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &fd) || PeerOf(fd) != wanted) continue;
    // gRPC owns the descriptor. It reads the end of the connection and closes it.
    closed += ::shutdown(fd, SHUT_RDWR) == 0 ? 1 : 0;
  }
  return closed;
}

void LimitCalls(grpc::ServerBuilder* builder, const Clock* clock) {
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kConcurrentStreams);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> limiters;
  limiters.push_back(std::make_unique<Limiter>(clock));
  builder->experimental().SetInterceptorCreators(std::move(limiters));
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
