// SHA-256 (OpenSSL) of data that comes in pieces. An object is not thread-safe. Blocks nowhere.
#ifndef DATACOM_COMMON_CONFIG_SHA256_H_
#define DATACOM_COMMON_CONFIG_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace datacom {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256& other);
  void Add(absl::string_view data);
  // Adds the length before the data, so that ("ab", "c") and ("a", "bc") differ.
  void AddField(absl::string_view data);
  std::string Hex() const;  // of what was added so far: 64 characters

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string Sha256Hex(absl::string_view data);

}  // namespace datacom

#endif  // DATACOM_COMMON_CONFIG_SHA256_H_
// SPDX-License-Identifier: Apache-2.0
