#include "common/rpc/security.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom {
namespace {

constexpr char kAuthorization[] = "authorization";

// A secret may be read by its owner alone. The group may read one of root, unless this process is root: Kubernetes
// mounts secrets that way for processes of other users.
absl::Status CheckMode(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return absl::OkStatus();  // reading it will say why
  const bool mounted = info.st_uid == 0 && ::geteuid() != 0;
  if ((info.st_mode & (mounted ? 0037 : 0077)) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("tls: %s has mode %04o: other users can read or change this secret; type: chmod 600 %s", path,
                      static_cast<unsigned>(info.st_mode & 07777), path));
}

absl::StatusOr<std::string> ReadTlsFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat("tls: ", std::string(text.status().message())));
  return text;
}

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  ASSIGN_OR_RETURN(std::string text, ReadTlsFile(path));
  if (!absl::StrContains(text, "-----BEGIN "))
    return absl::InvalidArgumentError(absl::StrCat("tls: ", path, " is not a PEM file"));
  return text;
}

// Takes a time that does not reveal how much of the token is right.
bool SameSecret(const std::string& secret, const grpc::string_ref& given) {
  unsigned char difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given.data()[i] ^ secret[i % secret.size()]);
  }
  return difference == 0;
}

class TokenCheck : public grpc::AuthMetadataProcessor {
 public:
  explicit TokenCheck(const std::string& token) : expected_(absl::StrCat("Bearer ", token)) {}
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* /*context*/, OutputMetadata* consumed,
                       OutputMetadata* /*response*/) override {
    const auto [first, last] = metadata.equal_range(kAuthorization);
    if (first == last) return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "the call carries no token of the run");
    for (auto entry = first; entry != last; ++entry) {
      if (!SameSecret(expected_, entry->second)) {
        return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "the call's token is not this run's");
      }
      consumed->emplace(kAuthorization, std::string(entry->second.data(), entry->second.size()));
    }
    return grpc::Status::OK;
  }

 private:
  const std::string expected_;
};

}  // namespace

absl::StatusOr<Security> LoadSecurity(const std::string& folder) {
  Security security;
  if (folder.empty()) return security;
  ASSIGN_OR_RETURN(security.authority, ReadPem(folder + "/ca.crt"));
  ASSIGN_OR_RETURN(security.certificate, ReadPem(folder + "/tls.crt"));
  for (const char* secret : {"/tls.key", "/token"}) RETURN_IF_ERROR(CheckMode(folder + secret));
  ASSIGN_OR_RETURN(security.key, ReadPem(folder + "/tls.key"));
  ASSIGN_OR_RETURN(const std::string token, ReadTlsFile(folder + "/token"));
  security.token = std::string(absl::StripAsciiWhitespace(token));
  if (security.token.size() < kMinTokenLength) {
    return absl::InvalidArgumentError(absl::StrCat("tls: ", folder, "/token holds ", security.token.size(),
                                                   " characters, fewer than ", kMinTokenLength));
  }
  return security;
}

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const Security& security) {
  if (!security.enabled()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = security.authority;
  options.pem_cert_chain = security.certificate;
  options.pem_private_key = security.key;
  return grpc::CompositeChannelCredentials(grpc::SslCredentials(options), grpc::AccessTokenCredentials(security.token));
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const Security& security) {
  if (!security.enabled()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = security.authority;
  options.pem_key_cert_pairs.push_back({security.key, security.certificate});
  auto credentials = grpc::SslServerCredentials(options);
  credentials->SetAuthMetadataProcessor(std::make_shared<TokenCheck>(security.token));
  return credentials;
}

bool IsLoopback(const std::string& address) {
  return absl::StartsWith(address, "unix:") || absl::StartsWith(address, "127.") ||
         absl::StartsWith(address, "localhost:") || absl::StartsWith(address, "[::1]:");
}

}  // namespace datacom
