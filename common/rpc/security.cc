#include "common/rpc/security.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "grpc/grpc.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"

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

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio MemoryBio(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
}

Certificate FirstCertificate(const std::string& pem) {
  ERR_set_mark();
  Certificate certificate(PEM_read_bio_X509(MemoryBio(pem).get(), nullptr, nullptr, nullptr), X509_free);
  ERR_pop_to_mark();  // gRPC reads OpenSSL's errors of this thread
  return certificate;
}

Key PrivateKey(const std::string& pem) {
  char no_password[] = "";  // without it OpenSSL asks at the terminal for the password of an encrypted key
  ERR_set_mark();
  Key key(PEM_read_bio_PrivateKey(MemoryBio(pem).get(), nullptr, nullptr, no_password), EVP_PKEY_free);
  ERR_pop_to_mark();
  return key;
}

bool Match(const Certificate& certificate, const Key& key) {
  ERR_set_mark();
  const bool match = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_pop_to_mark();
  return match;
}

// gRPC accepts any files at the start and would refuse every connection later.
absl::Status CheckContents(const Security& security, const std::string& folder) {
  const Certificate certificate = FirstCertificate(security.certificate);
  const Key key = PrivateKey(security.key);
  const auto invalid = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("tls: ", folder, what));
  };
  if (!FirstCertificate(security.authority)) return invalid("/ca.crt holds no certificate");
  if (!certificate) return invalid("/tls.crt holds no certificate");
  if (!key) return invalid("/tls.key holds no private key, or one with a password");
  return Match(certificate, key) ? absl::OkStatus() : invalid("/tls.key is not the key of tls.crt");
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

// Accepts a server by its DNS names, or by its common name if it has no alternative names. gRPC's verifier also takes
// the common name of a certificate whose alternative names are all of other types.
class ServerName : public grpc::experimental::ExternalCertificateVerifier {
 public:
  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> callback, grpc::Status* status) override {
    const grpc::string_ref pem = request->peer_cert();
    const Certificate certificate = FirstCertificate(std::string(pem.data(), pem.size()));
    const bool named = certificate && X509_get_ext_by_NID(certificate.get(), NID_subject_alt_name, -1) >= 0;
    if (certificate && (!named || !request->dns_names().empty())) {
      return host_name_.Verify(request, std::move(callback), status);
    }
    *status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "the server's certificate has no DNS name");
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest* /*request*/) override {}  // Verify does not wait

 private:
  grpc::experimental::HostNameCertificateVerifier host_name_;
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
  RETURN_IF_ERROR(CheckContents(security, folder));
  security.files = FollowFiles(folder, renewal);
  return security;
}

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const Security& security) {
  if (!security.enabled()) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Certificates(security));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(grpc::experimental::ExternalCertificateVerifier::Create<ServerName>());
  return grpc::CompositeChannelCredentials(grpc::experimental::TlsCredentials(options),
                                           grpc::AccessTokenCredentials(security.token));
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const Security& security) {
  if (!security.enabled()) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(Certificates(security));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  auto credentials = grpc::experimental::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(std::make_shared<TokenCheck>(security.token));
  return credentials;
}

bool IsLoopback(const std::string& address) {
  return absl::StartsWith(address, "unix:") || absl::StartsWith(address, "127.") ||
         absl::StartsWith(address, "localhost:") || absl::StartsWith(address, "[::1]:");
}

}  // namespace datacom
