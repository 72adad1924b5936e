#include "common/rpc/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"

namespace datacom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// A connected socket, and the other end's name of it.
struct Client {
  explicit Client(const std::string& address) : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected = ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
    socklen_t size = sizeof to;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&to), &size);
    name = absl::StrCat("ipv4:127.0.0.1:", ntohs(to.sin_port));
  }
  ~Client() { ::close(fd); }
  // Blocks until the other end sends or ends the connection. Whether it has ended.
  bool Ended() const {
    char byte = 0;
    return ::recv(fd, &byte, 1, 0) <= 0;
  }

  const int fd;
  bool connected = false;
  std::string name;
};

TEST(Listener, TakesTheConnectionsThatItAdmitsAndResetsTheOthers) {
  auto listener = Listener::Bind("127.0.0.1:0").value();
  EXPECT_THAT(listener->address(), StartsWith("127.0.0.1:"));
  int asked = 0;
  std::promise<int> taken;
  std::promise<void> ticked;
  int ticks = 0;
  listener->Start({.admits =
                       [&](const std::string& address) {
                         EXPECT_EQ(address, "ipv4:127.0.0.1");
                         return ++asked == 2;
                       },
                   .take = [&](int fd) { taken.set_value(fd); },
                   .tick =
                       [&] {
                         if (++ticks == 3) ticked.set_value();
                         return std::chrono::milliseconds(1);
                       }});
  ticked.get_future().wait();
  const Client refused(listener->address());
  EXPECT_TRUE(refused.Ended());
  const Client admitted(listener->address());
  const int fd = taken.get_future().get();
  EXPECT_EQ(::send(fd, "x", 1, 0), 1);
  EXPECT_FALSE(admitted.Ended());
  listener.reset();
  EXPECT_EQ(::send(fd, "x", 1, 0), 1) << "it stays open";
  ::close(fd);
}

TEST(Listener, NamesAnAddressThatItCannotListenOn) {
  const auto first = Listener::Bind("127.0.0.1:0").value();
  for (const std::string& address : {first->address(), std::string("192.0.2.1:0"), std::string("127.0.0.1"),
                                     std::string("127.0.0.1:65536"), std::string("no.such.host.invalid:0")}) {
    const absl::Status status = Listener::Bind(address).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("cannot listen on " + address));
  }
  EXPECT_THAT(Listener::Bind("localhost:0").status(), IsOk());
  const auto all = Listener::Bind("0.0.0.0:0").value();
  EXPECT_THAT(all->address(), StartsWith("0.0.0.0:"));
  EXPECT_TRUE(Client(all->address()).connected);
}

TEST(AddressOf, IsThePeerWithoutItsPort) {
  EXPECT_EQ(AddressOf("ipv4:10.0.0.7:4711"), "ipv4:10.0.0.7");
  EXPECT_EQ(AddressOf("ipv6:%5B::1%5D:4711"), "ipv6:[::1]");
}

TEST(ResetConnectionsFrom, EndsTheConnectionOfThisPeerAndDropsWhatItHasReceived) {
  const auto listener = Listener::Bind("127.0.0.1:0").value();
  std::promise<int> fds[2];
  int count = 0;
  listener->Start(
      {.admits = [](const std::string&) { return true; }, .take = [&](int fd) { fds[count++].set_value(fd); }});
  const Client wanted(listener->address());
  const int first = fds[0].get_future().get();
  const Client other(listener->address());
  const int second = fds[1].get_future().get();
  EXPECT_EQ(::send(wanted.fd, "received", 8, 0), 8);
  pollfd readable = {first, POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, -1), 1);
  EXPECT_THAT(listener->Peers(), UnorderedElementsAre(wanted.name, other.name)) << "and not the clients' own ends";
  EXPECT_EQ(ResetConnectionsFrom({"ipv4:10.0.0.7:4711", wanted.name}), 1);
  EXPECT_THAT(listener->Peers(), ElementsAre(other.name)) << "at once";
  EXPECT_TRUE(wanted.Ended());
  char bytes[8];
  EXPECT_LE(::recv(first, bytes, sizeof bytes, MSG_DONTWAIT), 0);
  EXPECT_EQ(::send(second, "x", 1, 0), 1);
  EXPECT_FALSE(other.Ended());
  EXPECT_EQ(ResetConnectionsFrom({wanted.name}), 0);
  EXPECT_EQ(ResetConnectionsFrom({"unix:", ""}), 0);
  ::close(first);
  ::close(second);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
