#include "common/rpc/security.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "common/rpc/certificates.h"
#include "grpc/grpc.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace datacom {
namespace {

constexpr char kAuthorization[] = "authorization";

// Only its owner may read a secret. The group may read a secret of root, unless this process is root: Kubernetes mounts
// secrets that way for processes of other users.
absl::Status CheckMode(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return absl::OkStatus();  // reading it will say why
  const bool mounted = info.st_uid == 0 && ::geteuid() != 0;
  if ((info.st_mode & (mounted ? 0037 : 0077)) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("tls: %s has mode %04o: other users can read or change this secret; type: chmod 600 %s", path,
                      static_cast<unsigned>(info.st_mode & 07777), path));
}

using CertificateProvider = grpc::experimental::CertificateProviderInterface;

std::shared_ptr<CertificateProvider> FollowFiles(const std::string& folder, std::chrono::seconds interval) {
  grpc_init();  // the provider does not do it
  return std::shared_ptr<CertificateProvider>(
      new grpc::experimental::FileWatcherCertificateProvider(
          folder + "/tls.key", folder + "/tls.crt", folder + "/ca.crt", static_cast<unsigned int>(interval.count())),
      [](CertificateProvider* provider) {
        delete provider;
        grpc_shutdown();
      });
}

std::shared_ptr<CertificateProvider> Certificates(const Security& security) {
  if (security.files != nullptr) return security.files;
  return std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
      security.authority, std::vector<grpc::experimental::IdentityKeyCertPair>{{security.key, security.certificate}});
}

// Accepts a peer by its DNS names, or by its common name if it has no alternative names.
class RoleCertificate : public grpc::experimental::ExternalCertificateVerifier {
 public:
  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/, grpc::Status* status) override {
    const grpc::string_ref pem = request->peer_cert();
    const Certificate certificate = FirstCertificate(std::string(pem.data(), pem.size()));
    std::vector<grpc::string_ref> names = request->dns_names();
    if (certificate && X509_get_ext_by_NID(certificate.get(), NID_subject_alt_name, -1) < 0) {
      names = {request->common_name()};
    }
    if (std::find(names.begin(), names.end(), kCertificateName) == names.end()) {
      *status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "the peer's certificate is not a role's");
    }
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest* /*request*/) override {}  // Verify does not wait
};

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

absl::StatusOr<Security> LoadSecurity(const std::string& folder, std::chrono::seconds renewal) {
  Security security;
  if (folder.empty()) return security;
  for (const char* secret : {"/tls.key", "/token"}) RETURN_IF_ERROR(CheckMode(folder + secret));
  ASSIGN_OR_RETURN(CertificateTexts texts, ReadCertificateFiles(folder));
  security.authority = std::move(texts.authority);
  security.certificate = std::move(texts.certificate);
  security.key = std::move(texts.key);
  ASSIGN_OR_RETURN(const std::string token, ReadTlsFile(folder + "/token"));
  security.token = std::string(absl::StripAsciiWhitespace(token));
  if (security.token.size() < kMinTokenLength) {
    return absl::InvalidArgumentError(absl::StrCat("tls: ", folder, "/token holds ", security.token.size(),
                                                   " characters, fewer than ", kMinTokenLength));
  }
  security.files = FollowFiles(folder, renewal);
  return security;
}

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const Security& security) {
  if (!security.enabled()) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Certificates(security));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(grpc::experimental::ExternalCertificateVerifier::Create<RoleCertificate>());
  return grpc::CompositeChannelCredentials(grpc::experimental::TlsCredentials(options),
                                           grpc::AccessTokenCredentials(security.token));
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const Security& security) {
  if (!security.enabled()) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(Certificates(security));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.set_certificate_verifier(grpc::experimental::ExternalCertificateVerifier::Create<RoleCertificate>());
  auto credentials = grpc::experimental::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(std::make_shared<TokenCheck>(security.token));
  return credentials;
}

bool IsLoopback(const std::string& address) {
  return absl::StartsWith(address, "127.") || absl::StartsWith(address, "localhost:") ||
         absl::StartsWith(address, "[::1]:");
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
