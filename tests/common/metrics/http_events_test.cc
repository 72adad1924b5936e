// The stream of server-sent events of the HTTP server, and who may read it.
#include <chrono>
#include <deque>
#include <string>

#include "common/metrics/http_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/metrics/http_client.h"
#include "tests/testing/patience.h"
#include "tests/testing/tls_files.h"

namespace datacom {
namespace {

using testing::Connection;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::kPatience;
using ::testing::Not;
using ::testing::StartsWith;

HttpServer::Options StreamOptions() {
  HttpServer::Options options;
  options.listen = "127.0.0.1:0";
  options.path = "/";
  options.content_type = "text/html";
  options.page = [] { return std::string("the page"); };
  options.events = "/events";
  options.patience = 2 * kPatience;
  options.heartbeat = std::chrono::hours(24);
  return options;
}

HttpServer::State Text(const std::string& whole, const std::string& change = "") { return {whole, change}; }

// The status of an answer to GET of `path` with these headers.
std::string Status(const std::string& address, const std::string& path,
                   const std::string& headers = "Host: localhost\r\n") {
  Connection connection(address);
  connection.Send("GET " + path + " HTTP/1.1\r\n" + headers + "\r\n");
  char buffer[13] = {};
  EXPECT_EQ(::recv(connection.fd(), buffer, 12, MSG_WAITALL), 12);
  return buffer;
}

// Reads from a stream until it has sent `text`; returns all it has sent.
class Reader {
 public:
  explicit Reader(const std::string& address, const std::string& headers = "Host: localhost\r\n")
      : connection_(address) {
    connection_.Send("GET /events HTTP/1.1\r\n" + headers + "\r\n");
  }
  const std::string& Until(const std::string& text) {
    char buffer[65536];
    for (ssize_t count = 1; count > 0 && seen_.find(text) == std::string::npos;) {
      count = ::recv(connection_.fd(), buffer, sizeof buffer, 0);
      if (count > 0) seen_.append(buffer, static_cast<size_t>(count));
    }
    EXPECT_THAT(seen_, HasSubstr(text));
    return seen_;
  }
  Connection& connection() { return connection_; }

 private:
  Connection connection_;
  std::string seen_;
};

TEST(HttpEvents, AStreamBeginsWithTheNewestStateAndGoesOnWithChanges) {
  const auto server = HttpServer::Start(StreamOptions()).value();
  server->Publish(Text("[whole 1]"));
  server->Publish(Text("[whole 2]", "[change 2]"));
  Reader reader(server->address());
  const std::string begin = reader.Until("[whole 2]");
  EXPECT_THAT(begin, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(begin, HasSubstr("Content-Type: text/event-stream\r\n"));
  EXPECT_THAT(begin, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(begin, EndsWith("\r\n\r\n[whole 2]"));
  server->Publish(Text("[whole 3]", "[change 3]"));
  EXPECT_THAT(reader.Until("[change 3]"), EndsWith("[whole 2][change 3]"));
  server->Publish(Text("[whole 4]"));
  EXPECT_THAT(reader.Until("[whole 4]"), EndsWith("[change 3][whole 4]")) << "a state without a change is sent whole";
}

TEST(HttpEvents, AStreamWaitsForTheFirstState) {
  const auto server = HttpServer::Start(StreamOptions()).value();
  Reader reader(server->address());
  EXPECT_THAT(reader.Until("\r\n\r\n"), EndsWith("\r\n\r\n"));
  server->Publish(Text("[whole 1]", "[change 1]"));
  EXPECT_THAT(reader.Until("[whole 1]"), EndsWith("\r\n\r\n[whole 1]"));
}

TEST(HttpEvents, AnEventIsOneNameAndOneLineOfData) {
  EXPECT_EQ(HttpServer::FormatEvent("state", "{}"), "event: state\ndata: {}\n\n");
}

TEST(HttpEvents, ManyClientsGetEveryChange) {
  const auto server = HttpServer::Start(StreamOptions()).value();
  server->Publish(Text("[whole 1]"));
  std::deque<Reader> readers;
  for (size_t i = 0; i < HttpServer::kMaxStreams; ++i) readers.emplace_back(server->address()).Until("[whole 1]");
  EXPECT_THAT(testing::Get(server->address(), "/events"), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(testing::Get(server->address(), "/"), EndsWith("the page")) << "pages are still answered";
  server->Publish(Text("[whole 2]", "[change 2]"));
  for (Reader& reader : readers) EXPECT_THAT(reader.Until("[change 2]"), EndsWith("[whole 1][change 2]"));
}

TEST(HttpEvents, AClientThatLeavesMakesRoom) {
  const auto server = HttpServer::Start(StreamOptions()).value();
  server->Publish(Text("[whole 1]"));
  std::deque<Reader> readers;
  for (size_t i = 0; i < HttpServer::kMaxStreams; ++i) readers.emplace_back(server->address()).Until("[whole 1]");
  readers.pop_front();
  bool begun = false;
  EXPECT_TRUE(testing::WaitUntil([&] { return begun; },
                                 [&] { begun = Status(server->address(), "/events") == "HTTP/1.1 200"; }));
}

TEST(HttpEvents, AClientThatTakesNothingIsDropped) {
  HttpServer::Options options = StreamOptions();
  options.patience = std::chrono::milliseconds(300);
  const auto server = HttpServer::Start(options).value();
  const std::string large(32 << 20, 'x');  // larger than what the buffers of both sockets take
  server->Publish(Text(large));
  Connection slow(server->address());
  slow.Send(testing::Request("/events"));
  for (const char* when : {"after the slow one's request", "after its patience"}) {
    Connection silent(server->address());
    EXPECT_TRUE(silent.IsClosed()) << when;
  }
  EXPECT_LT(slow.Receive().size(), large.size()) << "the server gave up before the client began to read";
}

TEST(HttpEvents, ASlowClientDelaysNobodyAndThenGetsTheNewestStateWhole) {
  const auto server = HttpServer::Start(StreamOptions()).value();
  const std::string large(32 << 20, 'x');
  server->Publish(Text("[small]"));
  Reader slow(server->address()), quick(server->address());
  slow.Until("[small]");
  quick.Until("[small]");
  server->Publish(Text(large, large + "[large]"));
  quick.Until("[large]");  // while the other one's event is still being sent
  for (const char* number : {"3", "4"}) {
    server->Publish(Text("[whole " + std::string(number) + "]", "[change " + std::string(number) + "]"));
    quick.Until("[change " + std::string(number) + "]");
  }
  EXPECT_THAT(slow.Until("[whole 4]"), EndsWith("[large][whole 4]"));
}

TEST(HttpEvents, AClientThatSpeaksIsDropped) {
  const auto server = HttpServer::Start(StreamOptions()).value();
  Reader reader(server->address());
  reader.Until("\r\n\r\n");
  reader.connection().Send("GET /events HTTP/1.1\r\n");
  EXPECT_TRUE(reader.connection().IsClosed());
}

TEST(HttpEvents, CommentsKeepAnIdleStreamAlive) {
  HttpServer::Options options = StreamOptions();
  options.heartbeat = std::chrono::milliseconds(1);
  const auto server = HttpServer::Start(options).value();
  server->Publish(Text("[whole 1]"));
  Reader reader(server->address());
  reader.Until("[whole 1]:\n\n:\n\n");
}

TEST(HttpEvents, TheServersEndEndsItsStreams) {
  auto server = HttpServer::Start(StreamOptions()).value();
  Reader reader(server->address());
  reader.Until("\r\n\r\n");
  server.reset();
  EXPECT_TRUE(reader.connection().IsClosed());
}

TEST(HttpEvents, AStreamGoesOverTls) {
  const testing::TlsFiles files;
  HttpServer::Options options = StreamOptions();
  options.tls = files.folder();
  options.events = "/metrics";  // which GetOverTls asks for
  const auto server = HttpServer::Start(options).value();
  server->Publish(Text("[whole 1]"));
  EXPECT_THAT(testing::GetOverTls(server->address(), files.folder(), TLS1_3_VERSION, nullptr, "[whole 1]"),
              EndsWith("\r\n\r\n[whole 1]"));
  EXPECT_EQ(testing::GetOverTls(server->address(), ""), "") << "without a certificate";
}

class HttpHosts : public ::testing::Test {
 protected:
  HttpHosts() {
    HttpServer::Options options = StreamOptions();
    options.hosts = {"localhost", "127.0.0.1", "[::1]"};
    options.headers = {{"Content-Security-Policy", "default-src 'none'"}, {"X-Content-Type-Options", "nosniff"}};
    server_ = HttpServer::Start(options).value();
  }
  std::string StatusOf(const std::string& path, const std::string& headers) {
    return Status(server_->address(), path, headers);
  }
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpHosts, AnswersUnderTheirNamesWithAnyPort) {
  for (const char* path : {"/", "/events"}) {
    for (const char* host : {"localhost", "LocalHost:1", "127.0.0.1:8080", "[::1]", "[::1]:80"}) {
      EXPECT_EQ(StatusOf(path, "Host: " + std::string(host) + "\r\n"), "HTTP/1.1 200") << path << " " << host;
    }
  }
}

TEST_F(HttpHosts, RefuseEveryOtherName) {
  for (const char* path : {"/", "/events", "/other"}) {
    for (const char* headers :
         {"", "Host: \r\n", "Host: evil.example\r\n", "Host: localhost.evil.example:80\r\n",
          "Host: evil.example\r\nHost: localhost\r\n", "Host: localhost\r\nHost: evil.example\r\n",
          "Host: evil@localhost\r\n", "Host: [::1].evil.example\r\n", "Host: ::1\r\n"}) {
      EXPECT_EQ(StatusOf(path, headers), "HTTP/1.1 403") << path << " " << headers;
    }
  }
}

TEST_F(HttpHosts, RefuseAStreamForAPageOfAnotherSite) {
  const std::string host = "Host: localhost\r\nSec-Fetch-Site: ";
  for (const char* site : {"cross-site", "same-site", "anything"}) {
    EXPECT_EQ(StatusOf("/events", host + site + "\r\n"), "HTTP/1.1 403") << site;
  }
  for (const char* site : {"same-origin", "none"}) {
    EXPECT_EQ(StatusOf("/events", host + site + "\r\n"), "HTTP/1.1 200") << site;
  }
  EXPECT_EQ(StatusOf("/", host + "cross-site\r\n"), "HTTP/1.1 200") << "a link from another site";
}

TEST_F(HttpHosts, EveryAnswerHasTheHeadersAndNothingOfTheRequest) {
  for (const char* path : {"/?<script>", "/<script>", "/events"}) {
    for (const char* method : {"GET", "POST", "HEAD"}) {
      Connection connection(server_->address());
      connection.Send(testing::Request(path, method));
      std::string answer(4096, '\0');
      const ssize_t size = ::recv(connection.fd(), answer.data(), answer.size(), 0);
      answer.resize(size > 0 ? static_cast<size_t>(size) : 0);
      EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'none'\r\n")) << path;
      EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff\r\n")) << path;
      EXPECT_THAT(answer, Not(HasSubstr("script>"))) << path;
    }
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
