#include "common/base/random.h"

#include <sys/random.h>

#include <cmath>

#include "common/base/philox.h"

namespace datacom {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

uint64_t Mix(uint64_t x) {  // splitmix64 finaliser
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t SystemRandomNumber() {
  uint64_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
  }
  return value;
}

uint64_t StreamKey(std::string_view purpose, std::initializer_list<uint64_t> parts) {
  uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a over the purpose
  for (const char c : purpose) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  hash = Mix(hash ^ parts.size());
  for (const uint64_t part : parts) hash = Mix(hash ^ Mix(part));
  return hash;
}

uint32_t RandomStream::NextUint32() {
  if (used_ == 4) {
    block_ = Philox(counter_++, key_);
    used_ = 0;
  }
  return block_[used_++];
}

uint64_t RandomStream::NextUint64() {
  const uint64_t low = NextUint32();
  return low | (uint64_t{NextUint32()} << 32);
}

double RandomStream::Uniform() { return static_cast<double>(NextUint64() >> 11) * 0x1.0p-53; }

double RandomStream::Uniform(double low, double high) { return low + (high - low) * Uniform(); }

uint64_t RandomStream::Below(uint64_t bound) {  // Lemire's multiply-shift with rejection
  unsigned __int128 product = static_cast<unsigned __int128>(NextUint64()) * bound;
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t threshold = (0 - bound) % bound;
    while (static_cast<uint64_t>(product) < threshold) product = static_cast<unsigned __int128>(NextUint64()) * bound;
  }
  return static_cast<uint64_t>(product >> 64);
}

double RandomStream::Normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
  const double angle = kTwoPi * Uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

void FillUniform(uint64_t key, float* out, int64_t count) {
  RandomStream stream(key);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(stream.Uniform());
}

void FillNormal(uint64_t key, float* out, int64_t count) {
  RandomStream stream(key);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(stream.Normal());
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
