#include "common/rpc/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"

namespace datacom {
namespace {

constexpr int kBacklog = 4096;         // connections that wait for the thread; the kernel may allow fewer
constexpr int kUserTimeoutMs = 10000;  // a peer that acknowledges nothing for so long is gone
constexpr int kFullWaitMs = 100;       // while no descriptor is free

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

// Calls `visit` with the descriptor and the peer of each TCP connection of this process.
template <typename Visit>
void VisitConnections(const Visit& visit) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    int fd = -1;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &fd)) continue;
    if (const std::string peer = PeerOf(fd); !peer.empty()) visit(fd, peer);
  }
}

// A listening socket, or -1 and errno.
int Listen(const addrinfo& at, uint16_t port) {
  const int fd = ::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1, off = 0;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // accepted sockets inherit it
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs, sizeof kUserTimeoutMs);
  sockaddr_storage address = {};
  std::copy_n(reinterpret_cast<const char*>(at.ai_addr), at.ai_addrlen, reinterpret_cast<char*>(&address));
  if (at.ai_family == AF_INET6) {
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  }
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), at.ai_addrlen) == 0 && ::listen(fd, kBacklog) == 0) {
    return fd;
  }
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

uint16_t PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses Resolve(const std::string& host) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  if (::getaddrinfo(host.c_str(), "0", &hints, &found) != 0) found = nullptr;
  return {found, &::freeaddrinfo};
}

// Ends a connection without waiting for what its peer still sends.
void Reset(int fd) {
  const linger now = {1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(fd);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Bind(const std::string& address) {
  const auto unavailable = [&address] {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": the port is in use or the address is not one of this machine"));
  };
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > UINT16_MAX) {
    return unavailable();
  }
  const std::string host(absl::StripPrefix(absl::StripSuffix(address.substr(0, colon), "]"), "["));
  std::unique_ptr<Listener> listener(new Listener);
  const auto listen = [&](const std::string& name) {
    const Addresses found = Resolve(name);
    for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
      const int fd = Listen(*at, static_cast<uint16_t>(port));
      if (fd < 0 && errno == EADDRINUSE) return false;
      if (fd < 0) continue;  // a family that this machine does not have
      listener->sockets_.push_back(fd);
      port = PortOf(fd);
    }
    return !listener->sockets_.empty();
  };
  if (!((host == "0.0.0.0" && listen("::")) || listen(host))) return unavailable();
  listener->address_ = absl::StrCat(address.substr(0, colon + 1), port);
  listener->port_ = static_cast<uint16_t>(port);
  listener->stop_ = ::eventfd(0, EFD_CLOEXEC);
  if (listener->stop_ < 0) return ErrnoStatus(errno, "eventfd");
  return listener;
}

Listener::~Listener() {
  const uint64_t one = 1;
  if (thread_.joinable() && ::write(stop_, &one, sizeof one) == sizeof one) thread_.join();
  for (const int socket : sockets_) ::close(socket);
  if (stop_ >= 0) ::close(stop_);
}

void Listener::Start(Handlers handlers) {
  handlers_ = std::move(handlers);
  thread_ = std::thread([this] { Accept(); });
}

void Listener::Accept() {
  std::vector<pollfd> ready = {{stop_, POLLIN, 0}};
  for (const int socket : sockets_) ready.push_back({socket, POLLIN, 0});
  using Clock = std::chrono::steady_clock;
  for (Clock::time_point due = Clock::now();;) {
    if (Clock::now() >= due) {
      const std::chrono::milliseconds wait = handlers_.tick();
      due = Clock::now() + wait;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now()).count();
    ::poll(ready.data(), ready.size(), static_cast<int>(std::max<int64_t>(0, left)));
    if (ready[0].revents != 0) return;
    for (size_t i = 1; i < ready.size(); ++i) {
      if (ready[i].revents == 0) continue;
      const int fd = ::accept4(ready[i].fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) ::poll(ready.data(), 1, kFullWaitMs);
        continue;
      }
      due = std::min(due, Clock::now() + kSoon);
      if (handlers_.admits(AddressOf(PeerOf(fd)))) {
        handlers_.take(fd);
      } else {
        Reset(fd);
      }
    }
  }
}

std::vector<std::string> Listener::Peers() const {
  std::vector<std::string> peers;
  VisitConnections([&](int fd, const std::string& peer) {
    if (PortOf(fd) == port_) peers.push_back(peer);
  });
  return peers;
}

std::string PlainPeer(const std::string& peer) { return absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}}); }

std::string AddressOf(const std::string& peer) { return PlainPeer(peer.substr(0, peer.rfind(':'))); }

int ResetConnectionsFrom(const std::vector<std::string>& peers) {
  const std::set<std::string> wanted(peers.begin(), peers.end());
  int found = 0;
  if (wanted.empty()) return found;
  VisitConnections([&](int fd, const std::string& peer) {
    if (!wanted.contains(peer)) return;
    // gRPC owns the descriptor. It finds the connection ended and closes it. Ended in the usual way, it would first
    // read what the kernel holds.
    const sockaddr nobody = {AF_UNSPEC, {}};
    found += ::connect(fd, &nobody, sizeof nobody) == 0 ? 1 : 0;
  });
  return found;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
