#include "common/metrics/http_server.h"

#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>

#include "common/base/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/metrics/http_client.h"
#include "tests/testing/changed_files.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/patience.h"
#include "tests/testing/tls_files.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using testing::Connection;
using testing::Get;
using testing::GetOverTls;
using ::testing::HasSubstr;
using testing::kPatience;
using testing::Request;
using ::testing::StartsWith;
using testing::TlsFiles;
using testing::WriteInPlace;

constexpr std::chrono::milliseconds kShort{300};

HttpServer::Options PageOptions(const std::string& page = "the page") {
  HttpServer::Options options;
  options.listen = "127.0.0.1:0";
  options.path = "/metrics";
  options.content_type = "text/plain";
  options.page = [page] { return page; };
  options.patience = 2 * kPatience;  // longer than a client waits: what ends earlier has another reason
  return options;
}

std::unique_ptr<HttpServer> StartServer(const std::string& tls = "") {
  HttpServer::Options options = PageOptions();
  options.tls = tls;
  return HttpServer::Start(options).value();
}

// Larger than what the buffers of both sockets take.
std::string LargePage() { return std::string(32 << 20, 'x'); }

TEST(HttpServer, AnswersOnlyGetOfItsPath) {
  const auto server = StartServer();
  EXPECT_THAT(server->address(), ::testing::MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
  const std::string answer = Get(server->address());
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_THAT(answer, ::testing::EndsWith("\r\n\r\nthe page"));
  EXPECT_THAT(Get(server->address(), "/metrics?a=b"), HasSubstr("the page"));
  EXPECT_THAT(Get(server->address(), "/"), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(Get(server->address(), "/metrics/x"), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(Get(server->address(), "/metrics", "POST"), StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_EQ(Get(server->address(), "/metrics", "\x16\x03\x01"), "");
}

TEST(HttpServer, OtherPathsHaveAnswersOfTheirOwn) {
  HttpServer::Options options = HttpServer::ForThisMachine("127.0.0.1:0", "default-src 'none'");
  options.page = [] { return "the page"; };
  options.others = [](const std::string& target) -> std::optional<HttpServer::Answer> {
    if (target != "/data?n=2") return std::nullopt;
    return HttpServer::Answer{"application/json", "[2]"};
  };
  const auto server = HttpServer::Start(options).value();
  const std::string answer = Get(server->address(), "/data?n=2");
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Type: application/json\r\n"),
                            HasSubstr("Content-Security-Policy: default-src 'none'\r\n"), HasSubstr("\r\n\r\n[2]")));
  EXPECT_THAT(Get(server->address(), "/data?n=3"), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(Get(server->address(), "/"), HasSubstr("the page"));
  EXPECT_THAT(Get(server->address(), "/data?n=2", "POST"), StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
}

TEST(HttpServer, AnswersOnAHostName) {
  HttpServer::Options options = PageOptions();
  options.listen = "localhost:0";
  const auto server = HttpServer::Start(options);
  if (!server.ok() && !std::ifstream("/etc/hosts").good()) GTEST_SKIP() << "no /etc/hosts: " << server.status();
  EXPECT_THAT(server.value()->address(), StartsWith("localhost:"));
}

TEST(HttpServer, AnswersOnAnIpv6AddressOrSaysThatThereIsNone) {
  HttpServer::Options options = PageOptions();
  options.listen = "[::1]:0";
  const auto server = HttpServer::Start(options);
  if (server.ok()) {
    EXPECT_THAT((*server)->address(), StartsWith("[::1]:"));
  } else {
    EXPECT_THAT(std::string(server.status().message()), StartsWith("cannot listen on [::1]:0: "));
  }
}

TEST(HttpServer, ServesALargePageWhole) {
  const auto server = HttpServer::Start(PageOptions(LargePage())).value();
  const std::string answer = Get(server->address());
  EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, LargePage().size());
}

TEST(HttpServer, AnErrorToListenNamesTheAddressAndTheCause) {
  const auto first = StartServer();
  HttpServer::Options options = PageOptions();
  options.listen = first->address();
  absl::Status status = HttpServer::Start(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(status.message(), "cannot listen on " + first->address() + ": Address already in use");
  options.listen = "192.0.2.1:9100";  // reserved for documentation
  EXPECT_EQ(HttpServer::Start(options).status().message(),
            "cannot listen on 192.0.2.1:9100: Cannot assign requested address");
  options.listen = "9100";
  EXPECT_EQ(HttpServer::Start(options).status().message(), "cannot listen on 9100: Invalid argument");
}

TEST(HttpServer, SilentClientsDelayNoAnswer) {
  const auto server = StartServer();
  std::deque<Connection> silent;
  for (int i = 0; i < 40; ++i) silent.emplace_back(server->address());
  EXPECT_THAT(Get(server->address()), HasSubstr("the page"));
}

TEST(HttpServer, ClosesTheOldestConnectionWhenThereAreTooMany) {
  const auto server = StartServer();
  std::deque<Connection> silent;
  for (size_t i = 0; i < HttpServer::kMaxConnections; ++i) silent.emplace_back(server->address());
  EXPECT_THAT(Get(server->address()), HasSubstr("the page"));
  EXPECT_TRUE(silent.front().IsClosed());
  silent.back().SetPatience(std::chrono::milliseconds(1));
  EXPECT_FALSE(silent.back().IsClosed());
}

TEST(HttpServer, ClosesAConnectionWithALongRequest) {
  const auto server = StartServer();
  Connection connection(server->address());
  connection.Send("GET /metrics HTTP/1.1\r\nCookie: " + std::string(HttpServer::kMaxRequestBytes, 'x'));
  EXPECT_EQ(connection.Receive(), "");
  EXPECT_TRUE(connection.IsClosed());
}

TEST(HttpServer, ClosesTheConnectionOfAClientThatSendsAByteAtATime) {
  HttpServer::Options options = PageOptions();
  options.patience = kShort;
  const auto server = HttpServer::Start(options).value();
  Connection connection(server->address());
  connection.SetPatience(std::chrono::milliseconds(10));
  EXPECT_TRUE(testing::WaitUntil([&] { return !connection.Send("G") || connection.IsClosed(); }, [] {}));
}

TEST(HttpServer, ClosesTheConnectionOfAClientThatDoesNotReadOrFinishItsHandshake) {
  const TlsFiles files;
  HttpServer::Options options = PageOptions(LargePage());
  options.patience = kShort;
  const auto plain = HttpServer::Start(options).value();
  options.tls = files.folder();
  const auto secure = HttpServer::Start(options).value();
  Connection reader(plain->address()), later(plain->address()), stranger(secure->address());
  reader.Send(Request("/metrics"));
  stranger.Send("\x16\x03\x01");
  EXPECT_TRUE(stranger.IsClosed());
  EXPECT_TRUE(later.IsClosed()) << "after the reader";
  EXPECT_LT(reader.Receive().size(), LargePage().size()) << "the server gave up before the client began to read";
}

// The state of a client's request while the server stops.
struct StopCase {
  const char* name;
  bool tls;
  std::string sent;
};
class HttpServerStop : public ::testing::TestWithParam<StopCase> {};

TEST_P(HttpServerStop, ClosesItsConnectionAndFreesThePort) {
  const std::unique_ptr<TlsFiles> files(GetParam().tls ? new TlsFiles : nullptr);
  HttpServer::Options options = PageOptions(GetParam().tls ? "the page" : LargePage());
  options.patience = std::chrono::hours(24);  // a stop that waits for its clients is a hang
  if (files != nullptr) options.tls = files->folder();
  auto server = HttpServer::Start(options).value();
  options.listen = server->address();
  Connection client(server->address());
  client.Send(GetParam().sent);
  // Once a later client has its answer, the server knows the first one.
  EXPECT_NE(files != nullptr ? GetOverTls(server->address(), files->folder()) : Get(server->address(), "/"), "");
  server.reset();
  EXPECT_TRUE(client.IsClosed());
  EXPECT_THAT(HttpServer::Start(options), IsOk()) << "the port is free";
}

INSTANTIATE_TEST_SUITE_P(WhileAClient, HttpServerStop,
                         ::testing::Values(StopCase{"IsSilent", false, ""},
                                           StopCase{"SentHalfARequest", false, "GET /met"},
                                           StopCase{"DoesNotRead", false, "GET /metrics HTTP/1.1\r\n\r\n"},
                                           StopCase{"DoesNotBeginItsHandshake", true, ""},
                                           StopCase{"SentHalfAHandshake", true, "\x16\x03\x01\x02"}),
                         [](const auto& info) { return info.param.name; });

TEST(HttpServer, StopsBeforeItsFirstConnection) {
  HttpServer::Options options = PageOptions();
  auto server = HttpServer::Start(options).value();
  options.listen = server->address();
  server.reset();
  EXPECT_THAT(HttpServer::Start(options), IsOk()) << "the port is free";
}

TEST(HttpServerOverTls, AnswersOnlyClientsWithACertificateOfTheAuthority) {
  const TlsFiles files, others;
  const auto server = StartServer(files.folder());
  EXPECT_THAT(GetOverTls(server->address(), files.folder()), HasSubstr("the page"));
  EXPECT_THAT(GetOverTls(server->address(), files.folder(), TLS1_2_VERSION), HasSubstr("the page"));
  EXPECT_EQ(GetOverTls(server->address(), ""), "") << "without a certificate";
  EXPECT_EQ(GetOverTls(server->address(), files.folder(), TLS1_1_VERSION), "");
  EXPECT_THAT(Get(server->address()), ::testing::Not(HasSubstr("the page")));
  std::filesystem::copy_file(files.folder() + "/ca.crt", others.folder() + "/ca.crt",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(GetOverTls(server->address(), others.folder()), "") << "with a certificate of another authority";
}

TEST(HttpServerOverTls, RefusesACertificateThatIsNotForClients) {
  const TlsFiles files;
  const auto server = StartServer(files.folder());
  files.Certify("subjectAltName=DNS:datacom\nextendedKeyUsage=serverAuth");
  EXPECT_EQ(GetOverTls(server->address(), files.folder()), "");
}

TEST(HttpServerOverTls, TheNextConnectionUsesRenewedFiles) {
  const TlsFiles files;
  const auto server = StartServer(files.folder());
  std::string before, after;
  EXPECT_THAT(GetOverTls(server->address(), files.folder(), TLS1_3_VERSION, &before), HasSubstr("the page"));
  files.Certify("subjectAltName=DNS:datacom");
  EXPECT_THAT(GetOverTls(server->address(), files.folder(), TLS1_3_VERSION, &after), HasSubstr("the page"));
  EXPECT_NE(before, after);
}

TEST(HttpServerOverTls, ARenewedAuthorityReplacesTheOldOne) {
  const TlsFiles files, renewed;
  const auto server = StartServer(files.folder());
  const TlsFiles old;
  for (const char* name : {"/ca.crt", "/tls.crt", "/tls.key"}) {
    const auto overwrite = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(files.folder() + name, old.folder() + name, overwrite);
    std::filesystem::copy_file(renewed.folder() + name, files.folder() + name, overwrite);
  }
  EXPECT_THAT(GetOverTls(server->address(), renewed.folder()), HasSubstr("the page"));
  WriteInPlace(old.folder() + "/ca.crt", ReadFile(renewed.folder() + "/ca.crt").value());
  EXPECT_EQ(GetOverTls(server->address(), old.folder()), "");
}

TEST(HttpServerOverTls, FilesThatDoNotFitLeaveTheLastOnesInUse) {
  const TlsFiles files;
  const TlsFiles client;
  for (const char* name : {"/ca.crt", "/tls.crt", "/tls.key"}) {
    std::filesystem::copy_file(files.folder() + name, client.folder() + name,
                               std::filesystem::copy_options::overwrite_existing);
  }
  const auto server = StartServer(files.folder());
  const std::string certificate = ReadFile(files.folder() + "/tls.crt").value();
  for (const std::string& text : {ReadFile("deploy/dev/make_tls.sh").value(), std::string(), certificate}) {
    WriteInPlace(files.folder() + "/tls.key", text);
    EXPECT_THAT(GetOverTls(server->address(), client.folder()), HasSubstr("the page"));
  }
  std::filesystem::remove(files.folder() + "/ca.crt");
  EXPECT_THAT(GetOverTls(server->address(), client.folder()), HasSubstr("the page"));
}

TEST(HttpServerOverTls, AFileThatCannotBeUsedIsAnErrorThatNamesIt) {
  const auto error = [](const TlsFiles& files) {
    HttpServer::Options options = PageOptions();
    options.tls = files.folder();
    const absl::Status status = HttpServer::Start(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  const TlsFiles missing, no_authority, no_certificate, no_key, other_key, other_type;
  std::filesystem::remove(missing.folder() + "/tls.crt");
  EXPECT_THAT(error(missing), HasSubstr(missing.folder() + "/tls.crt: No such file"));
  WriteInPlace(no_authority.folder() + "/ca.crt", "nothing\n");
  EXPECT_EQ(error(no_authority), "tls: " + no_authority.folder() + "/ca.crt holds no certificate");
  WriteInPlace(no_certificate.folder() + "/tls.crt", ReadFile(no_certificate.folder() + "/tls.key").value());
  EXPECT_EQ(error(no_certificate), "tls: " + no_certificate.folder() + "/tls.crt holds no certificate");
  WriteInPlace(no_key.folder() + "/tls.key", ReadFile(no_key.folder() + "/tls.crt").value());
  EXPECT_EQ(error(no_key), "tls: " + no_key.folder() + "/tls.key holds no private key, or one with a password");
  WriteInPlace(other_key.folder() + "/tls.key", ReadFile(no_certificate.folder() + "/tls.key").value());
  EXPECT_EQ(error(other_key), "tls: " + other_key.folder() + "/tls.key is not the key of tls.crt");
  const std::string command = "openssl genrsa -out " + other_type.folder() + "/tls.key 2048 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(error(other_type), "tls: " + other_type.folder() + "/tls.key is not the key of tls.crt");
  const std::string encrypt = "openssl rsa -aes128 -passout pass:secret -in " + other_type.folder() + "/tls.key -out " +
                              no_key.folder() + "/tls.key 2>/dev/null";
  ASSERT_EQ(std::system(encrypt.c_str()), 0);
  EXPECT_EQ(error(no_key), "tls: " + no_key.folder() + "/tls.key holds no private key, or one with a password");
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
