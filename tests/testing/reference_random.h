// Random streams and draws implemented from their papers, independently of common/base/random and
// common/transitions/draw_rows, as the expected values of tests. Header only; pure functions, thread-safe.
#ifndef DATACOM_TESTS_TESTING_REFERENCE_RANDOM_H_
#define DATACOM_TESTS_TESTING_REFERENCE_RANDOM_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace datacom::testing {

// Philox 4x32-10 (Salmon et al., 2011).
inline std::array<uint32_t, 4> ReferencePhilox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(a)};
    k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};
  }
  return c;
}

// The 64-bit numbers of a stream: pairs of words of block 0, 1, .., the lower word first.
inline uint64_t ReferenceNumber(uint64_t key, uint64_t number) {
  const std::array<uint32_t, 4> block = ReferencePhilox({static_cast<uint32_t>(number / 2), 0, 0, 0},
                                                        {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
  return block[number % 2 * 2] | uint64_t{block[number % 2 * 2 + 1]} << 32;
}

// splitmix64 (Steele et al., 2014).
inline uint64_t ReferenceMix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

// FNV-1a over the purpose, then splitmix64 over the parts' count and each of them.
inline uint64_t ReferenceKey(const std::string& purpose, const std::vector<uint64_t>& parts) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (const char c : purpose) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  hash = ReferenceMix(hash ^ parts.size());
  for (const uint64_t part : parts) hash = ReferenceMix(hash ^ ReferenceMix(part));
  return hash;
}

// `count` draws from the newest min(available, capacity) of rows [0, available): floor(number / 2^64 * held). A number
// that must be rejected (Lemire, 2019) is so rare, held in 2^64, that no test meets one.
inline std::vector<uint64_t> ReferenceRows(uint64_t key, uint64_t available, uint64_t capacity, int count) {
  const uint64_t held = available < capacity ? available : capacity;
  std::vector<uint64_t> rows;
  for (int i = 0; i < count; ++i) {
    const unsigned __int128 product = static_cast<unsigned __int128>(ReferenceNumber(key, i)) * held;
    rows.push_back(available - held + static_cast<uint64_t>(product >> 64));
  }
  return rows;
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_REFERENCE_RANDOM_H_
// SPDX-License-Identifier: Apache-2.0
