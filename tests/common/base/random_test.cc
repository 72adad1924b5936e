#include "common/base/random.h"

#include <cmath>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/reference_random.h"

namespace datacom {
namespace {

using ::datacom::testing::ReferencePhilox;

// The statistical bounds below are z standard errors wide. At z = 6 a false failure has probability 2e-9, and with
// fixed keys the outcome is the same in every run.
constexpr double kSigmas = 6;

TEST(RandomStream, GivesThePhiloxKnownAnswerForKeyAndCounterZero) {
  RandomStream stream(0);
  EXPECT_EQ(stream.NextUint32(), 0x6627e8d5u);
  EXPECT_EQ(stream.NextUint32(), 0xe169c58du);
  EXPECT_EQ(stream.NextUint32(), 0xbc57ac4cu);
  EXPECT_EQ(stream.NextUint32(), 0x9b00dbd8u);
}

TEST(ReferencePhilox, GivesTheOtherPublishedKnownAnswers) {
  EXPECT_EQ(ReferencePhilox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(ReferencePhilox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, IsTheReferenceGeneratorCountingBlocks) {
  const uint64_t key = 0x123456789abcdef0ull;
  RandomStream stream(key);
  for (uint32_t block = 0; block < 100; ++block) {
    const auto expected =
        ReferencePhilox({block, 0, 0, 0}, {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
    for (const uint32_t word : expected) ASSERT_EQ(stream.NextUint32(), word) << "block " << block;
  }
}

// The numbers below were computed by other code, from the definitions in random.h.
TEST(RandomStream, GivesTheNumbersOfRunsOnDisk) {
  const uint64_t key = 0x123456789abcdef0ull;
  RandomStream words(key), longs(key), uniform(key), normal(key), below(5);
  for (const uint32_t word : {0x092c9b44u, 0x78384bc0u, 0xc9fb80beu, 0x2b3be4ddu, 0x389d999au, 0x609cf517u}) {
    EXPECT_EQ(words.NextUint32(), word);
  }
  EXPECT_EQ(longs.NextUint64(), 0x78384bc0092c9b44ull) << "the lower word comes first";
  for (const double u : {0.4696090072476856, 0.16888266005297048, 0.37739497963831636}) {
    EXPECT_EQ(uniform.Uniform(), u);
  }
  for (const double x : {0.5494563193541874, 0.9830459793986365, -0.7862617357277069, -0.5740020887238453}) {
    EXPECT_NEAR(normal.Normal(), x, 1e-15) << "except the last bit of the C library's functions";
  }
  for (const uint64_t row : {642933696500577294ull, 6353200516341323637ull, 1840400749735056826ull}) {
    EXPECT_EQ(below.Below((1ull << 63) + 1), row) << "some numbers are rejected";
  }
  EXPECT_EQ(RandomStream(9).Child("wind").NextUint64(), RandomStream(0x55b10d67acfbc291ull).NextUint64());
}

TEST(RandomStream, UniformHasTheMomentsOfAUniform) {
  RandomStream stream(StreamKey("test.uniform", {1}));
  const int n = 1000000;
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const double u = stream.Uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += (u - 0.5) * (u - 0.5);
  }
  EXPECT_NEAR(sum / n, 0.5, kSigmas * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 12, kSigmas * std::sqrt(1.0 / 180 / n));  // var of (u - 1/2)^2 is 1/80 - 1/144
}

TEST(RandomStream, NormalHasTheFirstFourMomentsOfANormal) {
  RandomStream stream(StreamKey("test.normal", {1}));
  const int n = 1000000;
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (int i = 0; i < n; ++i) {
    const double x = stream.Normal();
    m1 += x;
    m2 += x * x;
    m3 += x * x * x;
    m4 += x * x * x * x;
  }
  // variances of x, x^2, x^3, x^4 of a standard normal: 1, 2, 15, 96
  EXPECT_NEAR(m1 / n, 0, kSigmas * std::sqrt(1.0 / n));
  EXPECT_NEAR(m2 / n, 1, kSigmas * std::sqrt(2.0 / n));
  EXPECT_NEAR(m3 / n, 0, kSigmas * std::sqrt(15.0 / n));
  EXPECT_NEAR(m4 / n, 3, kSigmas * std::sqrt(96.0 / n));
}

TEST(RandomStream, BelowReachesEveryValueEquallyOften) {
  RandomStream stream(StreamKey("test.below", {1}));
  const int bound = 7, n = 700000;
  std::vector<int> counts(bound);
  for (int i = 0; i < n; ++i) {
    const uint64_t value = stream.Below(bound);
    ASSERT_LT(value, static_cast<uint64_t>(bound));
    ++counts[value];
  }
  const double expected = n / static_cast<double>(bound);
  for (const int count : counts) EXPECT_NEAR(count, expected, kSigmas * std::sqrt(expected * (1 - 1.0 / bound)));
}

TEST(RandomStream, BelowStaysInRangeForBoundsNearTheMaximum) {
  RandomStream stream(StreamKey("test.below", {2}));
  const uint64_t bound = (1ull << 63) + 1;  // rejects almost half of the draws
  for (int i = 0; i < 1000; ++i) ASSERT_LT(stream.Below(bound), bound);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(stream.Below(1), 0u);
}

TEST(RandomStream, UniformStaysBetweenItsBounds) {
  RandomStream stream(StreamKey("test.range", {}));
  for (int i = 0; i < 1000; ++i) {
    const double value = stream.Uniform(-3, -2);
    ASSERT_GE(value, -3);
    ASSERT_LT(value, -2);
  }
}

TEST(StreamKey, DependsOnPurposeAndOnValueOrderAndNumberOfParts) {
  const std::set<uint64_t> keys = {StreamKey("a", {}),     StreamKey("b", {}),     StreamKey("a", {0}),
                                   StreamKey("a", {0, 0}), StreamKey("a", {1, 2}), StreamKey("a", {2, 1}),
                                   StreamKey("", {1, 2}),  StreamKey("ab", {1, 2})};
  EXPECT_EQ(keys.size(), 8u);
}

TEST(StreamKey, GivesTheKeysOfRunsOnDisk) {
  // Another hash would give every resumed run other numbers. The constants were computed by other code from the
  // definition: FNV-1a over the purpose, then splitmix64's finaliser over count and parts.
  EXPECT_EQ(StreamKey("", {}), 0xc3817c016ba4ff30ull);
  EXPECT_EQ(StreamKey("actor.noise", {7, 0, 42}), 0xe5e356f613a38ffbull);
  EXPECT_EQ(StreamKey("replay.draw.main", {11, 3, 1000}), 0x69aaf0d299dfb271ull);
  EXPECT_EQ(StreamKey("replay.draw.failure", {11, 3, 1000}), 0x77350ff7fd70191eull);
  EXPECT_EQ(StreamKey("replay.draw.main", {~0ull, 0, 1}), 0x5c7f70ad98fdae5aull);
}

TEST(FillNormal, GivesTheStreamsRoundedNormalsWithShorterOnesAsPrefix) {
  const uint64_t key = StreamKey("test.fill", {3});
  std::vector<float> values(101), prefix(50);
  FillNormal(key, values.data(), 101);
  FillNormal(key, prefix.data(), 50);
  RandomStream stream(key);
  for (const float value : values) ASSERT_EQ(value, static_cast<float>(stream.Normal()));
  EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), values.begin()));
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
