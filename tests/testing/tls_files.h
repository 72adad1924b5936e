// Certificates and a token for one test in its own folder, made by deploy/dev/make_tls.sh. Needs the openssl command
// and, like every test, the source folder as the working directory.
#ifndef DATACOM_TESTS_TESTING_TLS_FILES_H_
#define DATACOM_TESTS_TESTING_TLS_FILES_H_

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include "common/rpc/security.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::testing {

class TlsFiles {
 public:
  TlsFiles() {
    if (std::system(("deploy/dev/make_tls.sh " + folder()).c_str()) != 0)
      throw std::runtime_error("make_tls.sh failed");
  }
  const std::string& folder() const { return folder_.path(); }
  Security security() const { return LoadSecurity(folder()).value(); }

  // Replaces the certificate and its key by those of the same authority with common name datacom and these X.509
  // extensions, one per line.
  void Certify(const std::string& extensions) const {
    std::ofstream(folder() + "/extensions") << extensions;
    const std::string command = "cd " + folder() +
                                " && umask 077 && openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
                                "-subj /CN=datacom -keyout tls.key 2>/dev/null | openssl x509 -req -days 1 -CA ca.crt "
                                "-CAkey ca.key -CAcreateserial -extfile extensions -out tls.crt 2>/dev/null";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("openssl failed");
  }

 private:
  const TemporaryFolder folder_;
};

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_TLS_FILES_H_
// SPDX-License-Identifier: Apache-2.0
