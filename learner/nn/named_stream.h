// Random numbers of the learner core with a name as their key: common/base/random.h, read upper half first. Hash and
// order must never change, because they determine the first weights of a seed.
#ifndef DATACOM_LEARNER_NN_NAMED_STREAM_H_
#define DATACOM_LEARNER_NN_NAMED_STREAM_H_

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "common/base/random.h"

namespace datacom::learner {

// FNV-1a over the name, then over the numbers' bytes.
inline uint64_t NamedKey(std::string_view name, std::initializer_list<uint64_t> numbers) {
  uint64_t hash = 0xcbf29ce484222325ull;
  const auto add = [&hash](uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3ull; };
  for (const char c : name) add(static_cast<unsigned char>(c));
  for (const uint64_t number : numbers) {
    for (int shift = 0; shift < 64; shift += 8) add((number >> shift) & 0xff);
  }
  return hash;
}

class NamedStream {
 public:
  explicit NamedStream(uint64_t key) : stream_(key) {}

  double Uniform() {  // [0, 1), 53 bits
    const uint64_t high = stream_.NextUint32(), low = stream_.NextUint32();
    return static_cast<double>(((high << 32) | low) >> 11) * 0x1p-53;
  }
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }

 private:
  RandomStream stream_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_NAMED_STREAM_H_
// SPDX-License-Identifier: Apache-2.0
