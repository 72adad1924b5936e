#include "common/metrics/certificate_files.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace datacom {
namespace {

namespace ssl = boost::asio::ssl;
using boost::asio::buffer;
using boost::system::error_code;

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat("tls: ", std::string(text.status().message())));
  return text;
}

// A context that requires a client certificate of the authority. Sessions are never resumed, so that every connection
// is checked against the authority of its time.
CertificateFiles::Context NewContext() {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(native, 0);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  context->set_password_callback(  // without it OpenSSL asks at the terminal for the password of an encrypted key
      [](size_t /*max_length*/, ssl::context::password_purpose /*purpose*/) { return std::string(); });
  return context;
}

}  // namespace

absl::StatusOr<CertificateFiles> CertificateFiles::Open(const std::string& folder) {
  CertificateFiles files(folder);
  RETURN_IF_ERROR(files.Read());
  return files;
}

absl::Status CertificateFiles::Read() {
  ASSIGN_OR_RETURN(const std::string authority, ReadPem(folder_ + "/ca.crt"));
  ASSIGN_OR_RETURN(const std::string certificate, ReadPem(folder_ + "/tls.crt"));
  ASSIGN_OR_RETURN(const std::string key, ReadPem(folder_ + "/tls.key"));
  std::string contents = absl::StrCat(authority, "\n", certificate, "\n", key);
  if (contents == contents_) return absl::OkStatus();
  const auto invalid = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("tls: ", folder_, what));
  };
  Context context = NewContext();
  error_code error;
  ERR_clear_error();
  if (context->add_certificate_authority(buffer(authority), error)) return invalid("/ca.crt holds no certificate");
  if (context->use_certificate_chain(buffer(certificate), error)) return invalid("/tls.crt holds no certificate");
  context->use_private_key(buffer(key), ssl::context::pem, error);
  if (error && ERR_GET_REASON(static_cast<unsigned long>(error.value())) != X509_R_KEY_VALUES_MISMATCH)
    return invalid("/tls.key holds no private key, or one with a password");
  if (error || SSL_CTX_check_private_key(context->native_handle()) != 1) {
    ERR_clear_error();
    return invalid("/tls.key is not the key of tls.crt");
  }
  context_ = std::move(context);
  contents_ = std::move(contents);
  return absl::OkStatus();
}

const CertificateFiles::Context& CertificateFiles::Current() {
  const absl::Status status = Read();
  const std::string warning(status.message());
  if (!status.ok() && warning != warning_) spdlog::warn("the certificates read before stay in use: {}", warning);
  warning_ = warning;
  return context_;
}

}  // namespace datacom
