// Fixes the learner core's random numbers, which give the first weights of every net. All expected numbers were
// computed independently from the definitions in learner/nn/named_stream.h.
#include "learner/nn/named_stream.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/learner/algorithms/testing.h"

namespace datacom::learner {
namespace {

TEST(NamedKey, NeverChangesItsHash) {
  EXPECT_EQ(NamedKey("", {}), 0xcbf29ce484222325ull);
  EXPECT_EQ(NamedKey("learner.init.actor.mean.0.weight", {7, 100}), 0x06b66faacb4d5febull);
  EXPECT_EQ(NamedKey("a", {1, 2}), 0x66ff2bef2919dc0full);
  EXPECT_EQ(NamedKey("a", {2, 1}), 0x97027aae313faa2full);
}

// Key 0: the words of the published known answer of Philox 4x32-10 for counter and key 0, 6627e8d5 e169c58d bc57ac4c
// 9b00dbd8, two per number, the upper first: (6627e8d5 e169c58d >> 11) / 2^53.
TEST(NamedStream, GivesThePhiloxKnownAnswerForKeyAndCounterZero) {
  NamedStream stream(0);
  EXPECT_EQ(stream.Uniform(), 0.3990464708489645);
  EXPECT_EQ(stream.Uniform(), 0.7357127844834425);
}

TEST(NamedStream, NeverChangesItsNumbers) {
  NamedStream stream(0x123456789abcdef0ull), between(0x123456789abcdef0ull);
  for (const double u : {0.03583689138051327, 0.788993879726362, 0.2211547853372513, 0.02125138058335596,
                         0.5196776444075349, 0.6432920366840205}) {
    EXPECT_EQ(stream.Uniform(), u);
    EXPECT_EQ(between.Uniform(-3, 5), -3 + 8 * u);
  }
}

// Run seed 7, member seed 100, five inputs: uniform within 1 / sqrt(5).
TEST(Initialisation, NeverChangesTheFirstWeightsOfASeed) {
  const std::vector<float> weights = GetArray(*MakeAlgorithm(SmallConfig("datacom", 1)), 0, "actor.mean.0.weight");
  const double first[] = {-0.091627494, 0.249803795, 0.207888832, -0.347797047};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(weights[i], first[i], 1e-7) << i;
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
