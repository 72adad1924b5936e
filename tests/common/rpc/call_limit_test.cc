#include "common/rpc/channel.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace datacom {
namespace {

using ::datacom::testing::kPatience;

constexpr int kMostStreams = 1 << 18;  // of a peer that nobody stops

// A TCP connection to 127.0.0.1, without gRPC.
class Socket {
 public:
  explicit Socket(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool connected() const { return connected_; }
  // False when the other end has closed the connection.
  bool Send(const std::string& bytes) const {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t count = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
      if (count > 0) sent += static_cast<size_t>(count);
      pollfd wait = {fd_, POLLIN | POLLOUT, 0};
      if (::poll(&wait, 1, -1) < 0 || Ended()) return false;
    }
    return true;
  }
  // Whether the other end has closed the connection. Takes what it has sent.
  bool Ended() const {
    char buffer[4096];
    ssize_t count = 0;
    do count = ::recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
    while (count > 0);
    return count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }
  int fd() const { return fd_; }

 private:
  const int fd_;
  bool connected_ = false;
};

// A frame of HTTP/2 (RFC 9113, 4.1).
std::string Frame(int type, int flags, uint32_t stream, const std::string& payload) {
  std::string frame = {0, static_cast<char>(payload.size() >> 8), static_cast<char>(payload.size()),
                       static_cast<char>(type), static_cast<char>(flags)};
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(stream >> shift));
  return frame + payload;
}

// A header field that is not indexed, with a new name (RFC 7541, 6.2.2).
std::string Field(const std::string& name, const std::string& value) {
  return absl::StrCat(std::string(1, '\0'), std::string(1, static_cast<char>(name.size())), name,
                      std::string(1, static_cast<char>(value.size())), value);
}

// Begins a call and resets it at once.
std::string BegunAndReset(uint32_t stream, const std::string& method) {
  static const std::string end_of_call("\0\0\0\x8", 4);  // CANCEL
  const std::string headers = Field(":method", "POST") + Field(":scheme", "http") + Field(":path", method) +
                              Field(":authority", "x") + Field("te", "trailers") +
                              Field("content-type", "application/grpc");
  return Frame(/*HEADERS*/ 1, /*END_HEADERS*/ 4, stream, headers) + Frame(/*RST_STREAM*/ 3, 0, stream, end_of_call);
}

int PortOf(const std::string& address) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) << address;
  return port;
}

TEST(CallLimit, IsReachedByOneConnectionWithinASecondAndAgainAfterAsManyCalls) {
  ManualClock clock;
  clock.Advance(std::chrono::hours(1));
  CallLimit limit(3, &clock);
  EXPECT_FALSE(limit.Reaches("a"));
  EXPECT_FALSE(limit.Reaches("a"));
  EXPECT_FALSE(limit.Reaches("b")) << "another connection";
  EXPECT_TRUE(limit.Reaches("a"));
  EXPECT_FALSE(limit.Reaches("a"));
  EXPECT_FALSE(limit.Reaches("a"));
  EXPECT_TRUE(limit.Reaches("a"));
}

TEST(CallLimit, BeginsAnewAfterASecond) {
  ManualClock clock;
  clock.Advance(std::chrono::hours(1));
  CallLimit limit(3, &clock);
  EXPECT_FALSE(limit.Reaches("a"));
  EXPECT_FALSE(limit.Reaches("a"));
  clock.Advance(std::chrono::milliseconds(999));
  EXPECT_TRUE(limit.Reaches("a"));
  clock.Advance(std::chrono::milliseconds(1));
  EXPECT_FALSE(limit.Reaches("a"));
  EXPECT_FALSE(limit.Reaches("a"));
}

TEST(CloseConnectionsFrom, ClosesTheConnectionOfThisPeerOnly) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 2), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const Socket wanted(ntohs(address.sin_port)), other(ntohs(address.sin_port));
  const int first = ::accept(listener, nullptr, nullptr), second = ::accept(listener, nullptr, nullptr);
  ASSERT_TRUE(wanted.connected() && other.connected() && first >= 0 && second >= 0);
  ASSERT_EQ(::getsockname(wanted.fd(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(CloseConnectionsFrom(absl::StrCat("ipv4:127.0.0.1:", ntohs(address.sin_port))), 1);
  char byte = 0;
  EXPECT_EQ(::recv(wanted.fd(), &byte, 1, 0), 0) << "closed";
  EXPECT_TRUE(other.Send("x"));
  EXPECT_FALSE(other.Ended());
  EXPECT_EQ(CloseConnectionsFrom("unix:"), 0);
  EXPECT_EQ(CloseConnectionsFrom(""), 0);
  for (const int fd : {listener, first, second}) ::close(fd);
}

// The server's time stands still, so that all calls begin within a second.
TEST(Server, ClosesAConnectionThatResetsItsCallsAndServesTheOthers) {
  const ManualClock clock;
  ServerOptions options;
  options.clock = &clock;
  const auto server = Server::Start("127.0.0.1:0", {}, options).value();
  for (const std::string method : {"/datacom.v1.Replay/Insert", "/no.such/Method", "/grpc.health.v1.Health/Check"}) {
    const Socket peer(PortOf(server->address()));
    ASSERT_TRUE(peer.connected());
    ASSERT_TRUE(peer.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(/*SETTINGS*/ 4, 0, 0, "")));
    int streams = 0;
    while (streams < kMostStreams && peer.Send(BegunAndReset(2 * streams + 1, method))) ++streams;
    EXPECT_LT(streams, kMostStreams) << method << ": nobody closed the connection";
    EXPECT_GE(streams, 1000) << method;
    EXPECT_TRUE(CheckHealth(server->address(), kPatience).ok()) << method;
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
