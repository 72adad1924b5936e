#include "common/nn/normals.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>

#include "Eigen/Core"
#include "common/base/philox.h"

namespace datacom {
namespace {

constexpr int kLanes = 8;           // counters in one block
constexpr int kBlock = 4 * kLanes;  // numbers in one block
constexpr float kTwoPi = 6.28318531f;
using Vector = Eigen::Array<float, kLanes, 1>;

#ifdef __x86_64__
// The four words of four counters, each in the lower half of 64 bits.
struct Words {
  __m256i word[4];
};

Words FourCounters(uint64_t first_counter, uint64_t key) {
  const __m256i low = _mm256_set1_epi64x(0xffffffff);
  const __m256i counter =
      _mm256_add_epi64(_mm256_set1_epi64x(static_cast<int64_t>(first_counter)), _mm256_set_epi64x(3, 2, 1, 0));
  __m256i c0 = _mm256_and_si256(counter, low), c1 = _mm256_srli_epi64(counter, 32);
  __m256i c2 = _mm256_setzero_si256(), c3 = _mm256_setzero_si256();
  const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const __m256i p0 = _mm256_mul_epu32(m0, c0), p1 = _mm256_mul_epu32(m1, c2);
    const __m256i n0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1), _mm256_set1_epi64x(k0));
    const __m256i n2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3), _mm256_set1_epi64x(k1));
    c1 = _mm256_and_si256(p1, low);
    c3 = _mm256_and_si256(p0, low);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

// Uniform multiples of 2^-24 in [0, 1), from the words of two groups of counters.
Vector Uniform(__m256i even, __m256i odd) {
  const __m256i words = _mm256_or_si256(even, _mm256_slli_epi64(odd, 32));
  Vector uniform;
  _mm256_storeu_ps(uniform.data(), _mm256_cvtepi32_ps(_mm256_srli_epi32(words, 8)));
  return uniform * 0x1p-24f;
}
#else
using Word = std::array<uint32_t, 4>;  // of four counters
struct Words {
  Word word[4];
};

Words FourCounters(uint64_t first_counter, uint64_t key) {
  Words words;
  for (int i = 0; i < 4; ++i) {
    const std::array<uint32_t, 4> drawn = Philox(first_counter + i, key);
    for (int w = 0; w < 4; ++w) words.word[w][i] = drawn[w];
  }
  return words;
}

Vector Uniform(const Word& even, const Word& odd) {
  Vector uniform;
  for (int i = 0; i < kLanes; ++i) uniform[i] = static_cast<float>((i % 2 == 0 ? even : odd)[i / 2] >> 8);
  return uniform * 0x1p-24f;
}
#endif

void Block(uint64_t key, uint64_t first_counter, float* out) {
  const Words even = FourCounters(first_counter, key), odd = FourCounters(first_counter + 4, key);
  for (int pair = 0; pair < 2; ++pair) {
    const Vector first = Uniform(even.word[2 * pair], odd.word[2 * pair]);
    const Vector angle = kTwoPi * Uniform(even.word[2 * pair + 1], odd.word[2 * pair + 1]);
    const Vector radius = (-2.0f * (1.0f - first).log()).sqrt();
    Eigen::Map<Vector>(out + 2 * pair * kLanes) = radius * angle.cos();
    Eigen::Map<Vector>(out + (2 * pair + 1) * kLanes) = radius * angle.sin();
  }
}

}  // namespace

void FillNormalsFast(uint64_t key, float* out, int count) {
  uint64_t counter = 0;
  int i = 0;
  for (; i + kBlock <= count; i += kBlock, counter += kLanes) Block(key, counter, out + i);
  if (i == count) return;
  float rest[kBlock];
  Block(key, counter, rest);
  std::copy_n(rest, count - i, out + i);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
