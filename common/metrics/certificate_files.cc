#include "common/metrics/certificate_files.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace datacom {
namespace {

namespace ssl = boost::asio::ssl;
using boost::asio::buffer;
using boost::system::error_code;

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
  return context;
}

}  // namespace

absl::StatusOr<CertificateFiles> CertificateFiles::Open(const std::string& folder) {
  CertificateFiles files(folder);
  RETURN_IF_ERROR(files.Read());
  return files;
}

absl::Status CertificateFiles::Read() {
  ASSIGN_OR_RETURN(CertificateTexts texts, ReadCertificateFiles(folder_));
  if (texts == texts_) return absl::OkStatus();
  Context context = NewContext();
  error_code error;
  ERR_clear_error();
  if (context->add_certificate_authority(buffer(texts.authority), error) ||
      context->use_certificate_chain(buffer(texts.certificate), error) ||
      context->use_private_key(buffer(texts.key), ssl::context::pem, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tls: OpenSSL refuses the files of ", folder_, ": ", error.message()));
  }
  context_ = std::move(context);
  texts_ = std::move(texts);
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
// SPDX-License-Identifier: Apache-2.0
