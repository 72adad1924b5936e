#include "common/rpc/certificates.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio MemoryBio(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
}

Key PrivateKey(const std::string& pem) {
  const auto no_password = [](char*, int, int, void*) { return -1; };  // without it OpenSSL asks at the terminal
  ERR_set_mark();
  Key key(PEM_read_bio_PrivateKey(MemoryBio(pem).get(), nullptr, no_password, nullptr), EVP_PKEY_free);
  ERR_pop_to_mark();
  return key;
}

bool Match(const Certificate& certificate, const Key& key) {
  ERR_set_mark();
  const bool match = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_pop_to_mark();
  return match;
}

}  // namespace

Certificate FirstCertificate(const std::string& pem) {
  ERR_set_mark();
  Certificate certificate(PEM_read_bio_X509(MemoryBio(pem).get(), nullptr, nullptr, nullptr), X509_free);
  ERR_pop_to_mark();  // gRPC reads OpenSSL's errors of this thread
  return certificate;
}

absl::StatusOr<std::string> ReadTlsFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat("tls: ", std::string(text.status().message())));
  return text;
}

absl::StatusOr<CertificateTexts> ReadCertificateFiles(const std::string& folder) {
  CertificateTexts texts;
  ASSIGN_OR_RETURN(texts.authority, ReadTlsFile(folder + "/ca.crt"));
  ASSIGN_OR_RETURN(texts.certificate, ReadTlsFile(folder + "/tls.crt"));
  ASSIGN_OR_RETURN(texts.key, ReadTlsFile(folder + "/tls.key"));
  const Certificate certificate = FirstCertificate(texts.certificate);
  const Key key = PrivateKey(texts.key);
  const auto invalid = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("tls: ", folder, what));
  };
  if (!FirstCertificate(texts.authority)) return invalid("/ca.crt holds no certificate");
  if (!certificate) return invalid("/tls.crt holds no certificate");
  if (!key) return invalid("/tls.key holds no private key, or one with a password");
  if (!Match(certificate, key)) return invalid("/tls.key is not the key of tls.crt");
  return texts;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
