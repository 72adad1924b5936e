// The certificate files of a folder: ca.crt, tls.crt and tls.key (PEM). Thread-safe. Reading them blocks on the disk.
#ifndef DATACOM_COMMON_RPC_CERTIFICATES_H_
#define DATACOM_COMMON_RPC_CERTIFICATES_H_

#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace datacom {

struct CertificateTexts {
  std::string authority, certificate, key;  // PEM
  friend bool operator==(const CertificateTexts&, const CertificateTexts&) = default;
};

// INVALID_ARGUMENT, naming the file, when one is missing, holds no certificate or key, or when the key has a password
// or belongs to another certificate.
absl::StatusOr<CertificateTexts> ReadCertificateFiles(const std::string& folder);

// One file of such a folder; INVALID_ARGUMENT when it cannot be read.
absl::StatusOr<std::string> ReadTlsFile(const std::string& path);

// The first certificate of a PEM text; null when there is none.
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
Certificate FirstCertificate(const std::string& pem);

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_CERTIFICATES_H_
// SPDX-License-Identifier: Apache-2.0
