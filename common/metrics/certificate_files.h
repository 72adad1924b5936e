// The certificate files of a TLS server (common/rpc/certificates.h), which may be renewed at any time. Not thread-safe.
// Reading them blocks on the disk.
#ifndef DATACOM_COMMON_METRICS_CERTIFICATE_FILES_H_
#define DATACOM_COMMON_METRICS_CERTIFICATE_FILES_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "boost/asio/ssl/context.hpp"
#include "common/rpc/certificates.h"

namespace datacom {

class CertificateFiles {
 public:
  using Context = std::shared_ptr<boost::asio::ssl::context>;  // for one or more connections

  // INVALID_ARGUMENT as ReadCertificateFiles, or when OpenSSL cannot use a further certificate of a file.
  static absl::StatusOr<CertificateFiles> Open(const std::string& folder);
  // The TLS context of the current files. If they are unusable, it keeps the last usable context and logs one warning
  // per change of the files.
  const Context& Current();

 private:
  explicit CertificateFiles(std::string folder) : folder_(std::move(folder)) {}
  absl::Status Read();

  std::string folder_;
  CertificateTexts texts_;  // of context_
  std::string warning_;     // the last one in the log; empty once the files are sound
  Context context_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_METRICS_CERTIFICATE_FILES_H_
// SPDX-License-Identifier: Apache-2.0
