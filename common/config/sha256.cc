#include "common/config/sha256.h"

#include <openssl/evp.h>

#include <cstdint>
#include <cstdlib>

#include "absl/strings/escaping.h"

namespace datacom {

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  if (EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) != 1) std::abort();
}

Sha256::~Sha256() = default;

Sha256::Sha256(const Sha256& other) : context_(std::make_unique<Context>()) {
  if (EVP_MD_CTX_copy_ex(context_->evp, other.context_->evp) != 1) std::abort();
}

void Sha256::Add(absl::string_view data) {
  if (EVP_DigestUpdate(context_->evp, data.data(), data.size()) != 1) std::abort();
}

void Sha256::AddField(absl::string_view data) {
  const uint64_t size = data.size();
  Add(absl::string_view(reinterpret_cast<const char*>(&size), sizeof(size)));
  Add(data);
}

std::string Sha256::Hex() const {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const Sha256 copy(*this);  // finishing one ends it
  if (EVP_DigestFinal_ex(copy.context_->evp, digest, &size) != 1) std::abort();
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), size});
}

std::string Sha256Hex(absl::string_view data) {
  Sha256 hash;
  hash.Add(data);
  return hash.Hex();
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
