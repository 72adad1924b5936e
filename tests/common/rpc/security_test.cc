#include "common/rpc/security.h"

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "common/rpc/channel.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/patience.h"
#include "tests/testing/tls_files.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;
using testing::kPatience;
using testing::TlsFiles;

class EmptyReplay : public v1::Replay::Service {
 public:
  grpc::Status Info(grpc::ServerContext*, const v1::ReplayInfoRequest*, v1::ReplayInfo* reply) override {
    reply->set_run_id("reached");
    return grpc::Status::OK;
  }
};

absl::Status Ask(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(kPatience));
  v1::ReplayInfo reply;
  const grpc::Status status = v1::Replay::NewStub(channel)->Info(&context, v1::ReplayInfoRequest(), &reply);
  EXPECT_EQ(status.ok(), reply.run_id() == "reached");
  return FromGrpc(status);
}

void CopyCertificate(const TlsFiles& from, const TlsFiles& to,
                     const std::vector<std::string>& names = {"ca.crt", "tls.crt", "tls.key"}) {
  for (const std::string& name : names) {
    std::filesystem::copy_file(from.folder() + "/" + name, to.folder() + "/" + name,
                               std::filesystem::copy_options::overwrite_existing);
  }
}

class SecureServer : public ::testing::Test {
 protected:
  void SetUp() override {
    server_ = Server::Start("127.0.0.1:0", {&service_}, {files_.security(), "127.0.0.1:0"}).value();
  }
  absl::Status Call(const Security& client) { return Ask(MakeChannel(server_->address(), client)); }

  TlsFiles files_;
  EmptyReplay service_;
  std::unique_ptr<Server> server_;
};

TEST_F(SecureServer, ServesAClientOfItsAuthorityWithTheRunsToken) { EXPECT_THAT(Call(files_.security()), IsOk()); }

TEST_F(SecureServer, RefusesPlainText) { EXPECT_TRUE(absl::IsUnavailable(Call(Security()))) << Call(Security()); }

TEST_F(SecureServer, RefusesAClientWithoutACertificate) {
  grpc::SslCredentialsOptions only_authority;
  only_authority.pem_root_certs = files_.security().authority;
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(kCertificateName);
  const auto credentials = grpc::CompositeChannelCredentials(grpc::SslCredentials(only_authority),
                                                             grpc::AccessTokenCredentials(files_.security().token));
  const absl::Status status = Ask(grpc::CreateCustomChannel(server_->address(), credentials, arguments));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST_F(SecureServer, RefusesACertificateOfAnotherAuthority) {
  const TlsFiles other;
  Security client = files_.security();  // trusts the server but is not trusted by it
  client.files.reset();
  client.certificate = other.security().certificate;
  client.key = other.security().key;
  EXPECT_TRUE(absl::IsUnavailable(Call(client))) << Call(client);
}

TEST_F(SecureServer, IsNotTrustedByAClientOfAnotherAuthority) {
  const TlsFiles other;
  Security client = files_.security();  // would be trusted but does not trust the server
  client.files.reset();
  client.authority = other.security().authority;
  EXPECT_TRUE(absl::IsUnavailable(Call(client))) << Call(client);
}

TEST_F(SecureServer, RefusesTheTokenOfAnotherRunWithoutRetry) {
  Security client = files_.security();
  client.token.back() = client.token.back() == '0' ? '1' : '0';
  const absl::Status status = Call(client);
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("token"));
  EXPECT_FALSE(IsTransient(status));
  client.token = files_.security().token + "0";
  EXPECT_TRUE(absl::IsUnauthenticated(Call(client)));
  client.token = files_.security().token.substr(1);
  EXPECT_TRUE(absl::IsUnauthenticated(Call(client)));
}

TEST_F(SecureServer, RefusesACallWithoutToken) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = files_.security().authority;
  options.pem_cert_chain = files_.security().certificate;
  options.pem_private_key = files_.security().key;
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(kCertificateName);
  const absl::Status status =
      Ask(grpc::CreateCustomChannel(server_->address(), grpc::SslCredentials(options), arguments));
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
}

TEST_F(SecureServer, ServesOnlyHealthOnItsPlainTextPort) {
  EXPECT_THAT(CheckHealth(server_->health_address(), kPatience), IsOk());
  EXPECT_THAT(CheckHealth(server_->address(), kPatience, files_.security()), IsOk());
  EXPECT_FALSE(CheckHealth(server_->address(), kPatience).ok());
  server_->SetServing(false);
  EXPECT_THAT(std::string(CheckHealth(server_->health_address(), kPatience).message()), HasSubstr("not serving"));
  const absl::Status status = Ask(MakeChannel(server_->health_address()));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
}

// The authority's certificates differ only in their names and their purpose. Prometheus has one with another name.
TEST(Verification, ChecksThePeersNameAndPurpose) {
  struct Case {
    const char* extensions;
    bool as_server, as_client;
  };
  for (const Case& expected :
       {Case{"subjectAltName=DNS:datacom\n", true, true}, Case{"subjectAltName=DNS:host,DNS:datacom\n", true, true},
        Case{"subjectAltName=DNS:other\n", false, false},
        Case{"subjectAltName=DNS:datacom.example.org\n", false, false},
        Case{"subjectAltName=IP:127.0.0.1\n", false, false},
        Case{"subjectAltName=otherName:1.2.3.4;UTF8:name\n", false, false},
        Case{"basicConstraints=CA:FALSE\n", true, true},  // without alternative names the common name counts
        Case{"subjectAltName=DNS:datacom\nextendedKeyUsage=serverAuth\n", true, false},
        Case{"subjectAltName=DNS:datacom\nextendedKeyUsage=clientAuth\n", false, true}}) {
    const TlsFiles files;
    const Security usual = files.security();
    files.Certify(expected.extensions);
    const Security special = files.security();
    for (const bool as_server : {true, false}) {
      EmptyReplay service;
      const auto server = Server::Start("127.0.0.1:0", {&service}, {as_server ? special : usual, ""}).value();
      const absl::Status status = Ask(MakeChannel(server->address(), as_server ? usual : special));
      EXPECT_EQ(status.ok(), as_server ? expected.as_server : expected.as_client)
          << expected.extensions << "as " << (as_server ? "server" : "client") << ": " << status;
    }
  }
}

TEST(LoadSecurity, WithoutAFolderIsPlainText) { EXPECT_FALSE(LoadSecurity("").value().enabled()); }

TEST(LoadSecurity, NamesAMissingOrInvalidFile) {
  const TlsFiles files;
  const auto error = [&] {
    const absl::Status status = LoadSecurity(files.folder()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  std::ofstream(files.folder() + "/token") << "short\n";
  EXPECT_THAT(error(), ::testing::AllOf(HasSubstr(files.folder() + "/token"), HasSubstr("5 characters")));
  std::ofstream(files.folder() + "/tls.key") << "no key\n";
  EXPECT_THAT(error(), ::testing::AllOf(HasSubstr(files.folder() + "/tls.key"), HasSubstr("no private key")));
  std::filesystem::remove(files.folder() + "/ca.crt");
  EXPECT_THAT(error(), HasSubstr(files.folder() + "/ca.crt"));
}

TEST(LoadSecurity, RefusesAKeyOrTokenThatOthersCanReadAndSaysWhatToType) {
  namespace fs = std::filesystem;
  for (const char* name : {"tls.key", "token"}) {
    for (const auto& [more, mode] :
         {std::pair(fs::perms::group_read, "0640"), std::pair(fs::perms::others_read, "0604"),
          std::pair(fs::perms::group_write, "0620")}) {
      const TlsFiles files;
      const std::string path = files.folder() + "/" + name;
      fs::permissions(path, more, fs::perm_options::add);
      const absl::Status status = LoadSecurity(files.folder()).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << path;
      EXPECT_THAT(std::string(status.message()),
                  ::testing::AllOf(HasSubstr(path + " has mode " + mode), HasSubstr("chmod 600 " + path)));
    }
  }
  const TlsFiles files;
  fs::permissions(files.folder() + "/tls.crt", fs::perms::others_read, fs::perm_options::add);
  EXPECT_THAT(LoadSecurity(files.folder()), IsOk()) << "certificates are public";
}

// Kubernetes mounts secrets this way for a process that is not root.
TEST(LoadSecurity, AcceptsASecretOfRootThatTheGroupOfAnotherUserMayRead) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can try it";
  const TlsFiles files;
  namespace fs = std::filesystem;
  constexpr gid_t kGroup = 10001;
  fs::permissions(files.folder(), fs::perms::group_exec, fs::perm_options::add);
  for (const char* name : {"", "/ca.crt", "/tls.crt", "/tls.key", "/token"}) {
    ASSERT_EQ(::chown((files.folder() + name).c_str(), 0, kGroup), 0);
    fs::permissions(files.folder() + name, fs::perms::group_read, fs::perm_options::add);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const bool other = ::setgroups(0, nullptr) == 0 && ::setgid(kGroup) == 0 && ::setuid(10001) == 0;
    ::_exit(!other ? 2 : LoadSecurity(files.folder()).ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(LoadSecurity, NamesWhatIsWrongWithTheContents) {
  const auto error = [](const TlsFiles& files) {
    const absl::Status status = LoadSecurity(files.folder()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  const TlsFiles files, other;
  CopyCertificate(other, files, {"tls.key"});
  EXPECT_THAT(error(files), HasSubstr(files.folder() + "/tls.key is not the key of tls.crt"));
  for (const char* name : {"tls.key", "tls.crt", "ca.crt"}) {
    std::ofstream(files.folder() + "/" + name) << "-----BEGIN NOTHING-----\n";
    EXPECT_THAT(error(files), HasSubstr(files.folder() + "/" + name + " holds no "));
  }
}

// A server and its clients with certificates of one authority, and the certificates of another authority.
class Renewal : public ::testing::Test {
 protected:
  static constexpr std::chrono::seconds kInterval{1};

  static Security Fixed(const TlsFiles& files, const std::string& token) {
    Security security = files.security();
    security.files.reset();
    security.token = token;
    return security;
  }
  absl::Status Call(const Server& server, const Security& client) { return Ask(MakeChannel(server.address(), client)); }
  // Calls on new connections until one succeeds.
  void CallUntilAccepted(const Server& server, const Security& client) {
    const auto deadline = DeadlineIn(kPatience);
    absl::Status status;
    do {
      status = Call(server, client);
    } while (!status.ok() && std::chrono::system_clock::now() < deadline);
    EXPECT_THAT(status, IsOk());
  }
  std::unique_ptr<Server> Start(const Security& security) {
    return Server::Start("127.0.0.1:0", {&service_}, {security, ""}).value();
  }

  const TlsFiles files_, renewed_;
  const Security followed_ = LoadSecurity(files_.folder(), kInterval).value();
  const Security old_ = Fixed(files_, followed_.token), new_ = Fixed(renewed_, followed_.token);
  EmptyReplay service_;
};

TEST_F(Renewal, ServerUsesTheNewAuthorityForNewConnectionsAndKeepsOldOnes) {
  const auto server = Start(followed_);
  const auto old_connection = MakeChannel(server->address(), old_);
  EXPECT_THAT(Ask(old_connection), IsOk());
  EXPECT_TRUE(absl::IsUnavailable(Call(*server, new_)));
  CopyCertificate(renewed_, files_);
  CallUntilAccepted(*server, new_);
  EXPECT_TRUE(absl::IsUnavailable(Call(*server, old_)));
  EXPECT_THAT(Ask(old_connection), IsOk());
}

TEST_F(Renewal, ClientUsesTheNewAuthorityForNewConnections) {
  const auto old_server = Start(old_), new_server = Start(new_);
  EXPECT_THAT(Call(*old_server, followed_), IsOk());
  EXPECT_TRUE(absl::IsUnavailable(Call(*new_server, followed_)));
  CopyCertificate(renewed_, files_);
  CallUntilAccepted(*new_server, followed_);
  EXPECT_TRUE(absl::IsUnavailable(Call(*old_server, followed_)));
}

TEST_F(Renewal, ServerRecoversFromAKeyThatDoesNotMatchForAWhile) {
  const auto server = Start(followed_);
  CopyCertificate(renewed_, files_, {"tls.key"});
  const auto deadline = DeadlineIn(kPatience);
  while (Call(*server, old_).ok()) ASSERT_LT(std::chrono::system_clock::now(), deadline);
  CopyCertificate(renewed_, files_);
  CallUntilAccepted(*server, new_);
}

TEST_F(Renewal, ServerKeepsItsCertificateWhileTheFileIsMissing) {
  const auto server = Start(followed_);
  Security client = new_;  // it is of the new authority and trusts servers of the old one
  client.authority = old_.authority;
  EXPECT_TRUE(absl::IsUnavailable(Call(*server, client)));
  std::filesystem::remove(files_.folder() + "/tls.crt");
  CopyCertificate(renewed_, files_, {"ca.crt"});
  CallUntilAccepted(*server, client);
}

TEST_F(Renewal, ServerStillChecksTheTokenOfItsStart) {
  const auto server = Start(followed_);
  CopyCertificate(renewed_, files_, {"ca.crt", "tls.crt", "tls.key", "token"});
  CallUntilAccepted(*server, new_);
  EXPECT_TRUE(absl::IsUnauthenticated(Call(*server, renewed_.security())));
}

TEST(IsLoopback, RecognisesLoopbackAddresses) {
  for (const char* address : {"127.0.0.1:80", "127.8.0.1:0", "localhost:5", "[::1]:5"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  for (const char* address : {"0.0.0.0:80", "[::]:80", "10.0.0.1:80", "replay:80", "localhost.example.org:80"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
