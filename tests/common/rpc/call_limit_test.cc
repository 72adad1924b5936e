#include "common/rpc/call_limit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/patience.h"

namespace datacom {
namespace {

using ::datacom::testing::kPatience;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

using Calls = std::map<std::string, uint64_t>;

// A limit of 100 calls a second, and what it is told.
class CallLimitTest : public ::testing::Test {
 protected:
  CallLimitTest() { clock_.Advance(std::chrono::hours(1)); }
  // Each connection of `more` begins so many calls. Returns the peers that are reset, in this order.
  std::vector<std::string> Tick(const Calls& more, uint64_t messages = 1) {
    for (const auto& [peer, calls] : more) {
      CallCounts::Connection& connection = open_[peer];
      connection.calls += calls;
      connection.messages += messages;
      begun_ += calls;
    }
    reset_.clear();
    limit_.Tick(begun_);
    return reset_;
  }

  ManualClock clock_;
  CallCounts::ByPeer open_;
  uint64_t begun_ = 0;
  int asked_ = 0;
  std::vector<std::string> reset_;
  CallLimit limit_{100,
                   &clock_,
                   {.peers =
                        [this] {
                          std::vector<std::string> peers;
                          for (const auto& [peer, connection] : open_) peers.push_back(peer);
                          return peers;
                        },
                    .counts =
                        [this] {
                          ++asked_;
                          return open_;
                        },
                    .reset =
                        [this](const std::vector<std::string>& peers) {
                          for (const std::string& peer : peers) {
                            reset_.push_back(peer);
                            open_.erase(peer);
                          }
                        }}};
};

TEST_F(CallLimitTest, ResetsNobodyWithinTheLimit) {
  for (int tick = 0; tick < 50; ++tick) {
    EXPECT_THAT(Tick({{"a:1", 9}, {"a:2", 1}}), IsEmpty()) << tick;
    clock_.Advance(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(asked_, 5) << "once a second";
}

TEST_F(CallLimitTest, BeyondItResetsWhoHasBegunMoreThanItsShareWithinTheSecond) {
  EXPECT_THAT(Tick({{"a:1", 5}, {"b:1", 50}, {"c:1", 0}, {"d:1", 0}}), IsEmpty());
  EXPECT_THAT(Tick({{"a:1", 60}, {"b:1", 10}, {"c:1", 30}}), IsEmpty());
  EXPECT_THAT(Tick({{"b:1", 1}}), ElementsAre("a:1")) << "a third of the limit is 33";
  EXPECT_THAT(Tick({{"c:1", 3}, {"d:1", 21}}), IsEmpty()) << "a:1 is closed, so a third is 33 again";
  EXPECT_THAT(Tick({{"c:1", 1}}), ElementsAre("c:1"));
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_THAT(Tick({{"d:1", 30}}), ElementsAre("d:1")) << "the end of this second: a half is 50";
  EXPECT_THAT(Tick({{"b:1", 90}}), IsEmpty()) << "another second";
}

TEST_F(CallLimitTest, BeyondItResetsFirstWhoHadSentNoMessageWhenTheSecondBegan) {
  Tick({{"a:1", 1}});
  Tick({{"a:2", 1}}, /*messages=*/0);
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_THAT(Tick({}), IsEmpty());
  EXPECT_THAT(Tick({{"a:1", 1}, {"a:2", 1}, {"b:1", 99}}), ElementsAre("a:2", "b:1")) << "b:1 is new";
  EXPECT_THAT(Tick({{"a:1", 101}, {"c:1", 1}}), ElementsAre("c:1", "a:1"));
}

TEST_F(CallLimitTest, TwentyCallsOfEachOfManyConnectionsAreNotTooMany) {
  Calls many;
  for (int connection = 0; connection < 500; ++connection) many[absl::StrCat("a:", connection)] = 0;
  Tick(many);
  for (auto& [peer, calls] : many) calls = 20;
  EXPECT_THAT(Tick(many), IsEmpty());
  EXPECT_THAT(Tick({{"a:7", 1}}), ElementsAre("a:7"));
}

TEST_F(CallLimitTest, AnAddressWithAResetConnectionOpensFewUntilTenSecondsLater) {
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(limit_.AdmitsConnection("a"));
  EXPECT_FALSE(limit_.Disgraced());
  Tick({{"a:1", 0}});
  EXPECT_THAT(Tick({{"a:1", 150}}), ElementsAre("a:1"));
  for (int second = 0; second < 10; ++second) {
    EXPECT_TRUE(limit_.Disgraced());
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(limit_.AdmitsConnection("a")) << second;
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(limit_.AdmitsConnection("a")) << second;
    EXPECT_TRUE(limit_.AdmitsConnection("b"));
    clock_.Advance(std::chrono::seconds(1));
  }
  EXPECT_FALSE(limit_.Disgraced());
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(limit_.AdmitsConnection("a"));
}

// The limit is low, so that a slow machine exceeds it, too. The test ends only if the server serves again.
TEST(Server, ClosesAConnectionThatResetsItsCallsAndServesTheOthers) {
  ServerOptions options;
  options.calls_per_second = 50;
  for (const std::string method : {"/datacom.v1.Replay/Insert", "/no.such/Method", "/grpc.health.v1.Health/Check"}) {
    const auto server = Server::Start("127.0.0.1:0", {}, options).value();
    const Socket peer(PortOf(server->address()));
    ASSERT_TRUE(peer.connected());
    ASSERT_TRUE(peer.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(/*SETTINGS*/ 4, 0, 0, "")));
    int streams = 0;
    while (streams < kMostStreams && peer.Send(BegunAndReset(2 * streams + 1, method))) ++streams;
    EXPECT_LT(streams, kMostStreams) << method << ": nobody closed the connection";
    while (!CheckHealth(server->address(), kPatience).ok()) {  // a new connection is reset within the same second
    }
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
