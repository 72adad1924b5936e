// Tests which nets act with acting_tau: an average of policy and feasibility nets, computed here.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/algorithms/algorithm.h"
#include "tests/learner/algorithms/testing.h"

namespace datacom::learner {
namespace {

using ::testing::FloatNear;
using ::testing::Not;
using ::testing::Pointwise;

// An array of the member's snapshot.
std::vector<float> Acting(const Algorithm& algorithm, int member, const std::string& name) {
  const std::vector<ActingParameters> all = algorithm.GetActingParameters();
  for (const NamedArray& array : all[member].arrays) {
    if (array.name == name) return array.values;
  }
  return {};
}

TEST(ActingTau, AnAverageOfPolicyAndFeasibilityNetsActs) {
  for (const char* kernels : {"fused", "tensor"}) {
    const AlgorithmConfig config = SmallConfig("datacom_averaged", 2, kernels);
    for (const char* name : {"actor.mean.0.weight", "constraint.log_std.2.bias"}) {
      const auto algorithm = MakeAlgorithm(config);
      std::vector<double> average;
      for (const float value : GetArray(*algorithm, 1, name)) average.push_back(value);
      for (int u = 0; u < 4; ++u) {
        algorithm->Update(RandomBatch(config, u));
        const std::vector<float> newest = GetArray(*algorithm, 1, name);
        for (size_t i = 0; i < newest.size(); ++i) average[i] = 0.1 * newest[i] + 0.9 * average[i];
      }
      const std::vector<float> acting = Acting(*algorithm, 1, name);
      EXPECT_THAT(acting, Pointwise(FloatNear(1e-6f), average)) << name << " " << kernels;
      EXPECT_THAT(acting, Not(Pointwise(FloatNear(1e-4f), GetArray(*algorithm, 1, name))));
    }
  }
}

// A layer of raw observations is W / std, with the newest std, which the average of W does not change.
TEST(ActingTau, TheStatisticsOfObservationsAreNotAveraged) {
  AlgorithmConfig config = SmallConfig("sac_robust", 1);
  config.learner.set_acting_tau(0.1);
  const auto algorithm = MakeAlgorithm(config);
  for (int u = 0; u < 4; ++u) algorithm->Update(RandomBatch(config, u));
  const std::vector<float> deviation = GetArray(*algorithm, 0, "observation.std");
  std::vector<float> folded = GetArray(*algorithm, 0, "average_actor.mean.0.weight");
  const size_t width = folded.size() / deviation.size();
  for (size_t i = 0; i < folded.size(); ++i) folded[i] /= deviation[i / width];
  EXPECT_THAT(Acting(*algorithm, 0, "actor.mean.0.weight"), Pointwise(FloatNear(1e-5f), folded));
  EXPECT_NE(deviation, std::vector<float>(deviation.size(), 1.0f));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
