// SHA-256 over pieces (OpenSSL). Not thread-safe per object.
#ifndef DATACOM_LEARNER_SHA256_H_
#define DATACOM_LEARNER_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace datacom::learner {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void Add(absl::string_view data);
  // Length first, so that ("ab", "c") and ("a", "bc") differ.
  void AddField(absl::string_view data);
  std::string Hex();  // 64 characters; the object is used up

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string Sha256Hex(absl::string_view data);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_SHA256_H_
