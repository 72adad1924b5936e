// Certificates and a token for one test in its own folder, made by deploy/dev/make_tls.sh. Needs the openssl command
// and, like every test, the source folder as the working directory.
#ifndef DATACOM_TESTS_TESTING_TLS_FILES_H_
#define DATACOM_TESTS_TESTING_TLS_FILES_H_

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "common/rpc/security.h"

namespace datacom::testing {

class TlsFiles {
 public:
  TlsFiles() {
    char name[] = "/tmp/datacom_tls_XXXXXX";
    folder_ = ::mkdtemp(name);
    if (std::system(("deploy/dev/make_tls.sh " + folder_).c_str()) != 0) throw std::runtime_error("make_tls.sh failed");
  }
  ~TlsFiles() { std::filesystem::remove_all(folder_); }
  TlsFiles(const TlsFiles&) = delete;
  TlsFiles& operator=(const TlsFiles&) = delete;
  const std::string& folder() const { return folder_; }
  Security security() const { return LoadSecurity(folder_).value(); }

 private:
  std::string folder_;
};

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_TLS_FILES_H_
