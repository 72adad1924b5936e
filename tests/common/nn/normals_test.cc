// Many normals at once: named streams of Philox words, with the moments of the standard normal.
#include "common/nn/normals.h"

#include <cmath>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace datacom {
namespace {

// The words of the counters 0, 1, ..., as the scalar generator gives them.
std::vector<std::vector<uint32_t>> Words(uint64_t key, int counters) {
  RandomStream stream(key);
  std::vector<std::vector<uint32_t>> words(counters, std::vector<uint32_t>(4));
  for (auto& counter : words) {
    for (uint32_t& word : counter) word = stream.NextUint32();
  }
  return words;
}

TEST(Normals, AreBoxMullerOnTheWordsOfTheScalarGenerator) {
  const uint64_t key = StreamKey("normals", {3});
  std::vector<float> drawn(64);
  FillNormalsFast(key, drawn.data(), 64);
  const auto words = Words(key, 16);
  for (int block = 0; block < 2; ++block) {
    for (int lane = 0; lane < 8; ++lane) {
      const auto& w = words[8 * block + lane / 2 + (lane % 2) * 4];
      for (int pair = 0; pair < 2; ++pair) {
        const double u = (w[2 * pair] >> 8) / 16777216.0, v = (w[2 * pair + 1] >> 8) / 16777216.0;
        const double radius = std::sqrt(-2 * std::log(1 - u));
        const int at = 32 * block + 16 * pair + lane;
        EXPECT_NEAR(drawn[at], radius * std::cos(2 * M_PI * v), 2e-6);
        EXPECT_NEAR(drawn[at + 8], radius * std::sin(2 * M_PI * v), 2e-6);
      }
    }
  }
}

TEST(Normals, AnyCountIsTheBeginningOfTheSameStream) {
  std::vector<float> all(200);
  FillNormalsFast(9, all.data(), 200);
  for (const int count : {0, 1, 31, 32, 33, 95, 200}) {
    std::vector<float> some(201, -7.0f);
    FillNormalsFast(9, some.data(), count);
    for (int i = 0; i < 200; ++i) EXPECT_EQ(some[i], i < count ? all[i] : -7.0f) << count;
  }
}

TEST(Normals, HaveTheMomentsAndTailsOfTheStandardNormal) {
  constexpr int kCount = 4000000;
  std::vector<float> drawn(kCount);
  FillNormalsFast(1, drawn.data(), kCount);
  double sum = 0, square = 0, fourth = 0, neighbours = 0;
  int beyond_two = 0, beyond_four = 0;
  for (int i = 0; i < kCount; ++i) {
    const double z = drawn[i];
    ASSERT_TRUE(std::isfinite(z));
    sum += z, square += z * z, fourth += z * z * z * z;
    neighbours += i > 0 ? z * drawn[i - 1] : 0;
    beyond_two += std::abs(z) > 2, beyond_four += std::abs(z) > 4;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.002);
  EXPECT_NEAR(square / kCount, 1, 0.003);
  EXPECT_NEAR(fourth / kCount, 3, 0.02);
  EXPECT_NEAR(neighbours / kCount, 0, 0.002);
  EXPECT_NEAR(static_cast<double>(beyond_two) / kCount, 0.0455, 0.0005);
  EXPECT_NEAR(static_cast<double>(beyond_four) / kCount, 6.33e-5, 2e-5);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
