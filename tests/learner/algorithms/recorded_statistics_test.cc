// For every algorithm: the statistics of gradients and critics.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/learner/algorithms/testing.h"

namespace datacom::learner {
namespace {

class RecordedStatistics : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, RecordedStatistics, ::testing::ValuesIn(RegisteredAlgorithms()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Joined, RecordedStatistics, ::testing::Values("datacom_known", "iqn_datacom_known"),
                         [](const auto& info) { return info.param; });

bool StartsWithOneOf(const std::string& name, const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    if (name.rfind(prefix, 0) == 0) return true;
  }
  return false;
}

// Of the last update's gradients: the norm over all arrays that are `wanted`, read one by one.
double NormOf(const Algorithm& algorithm, const std::function<bool(const std::string& name)>& wanted) {
  double sum = 0;
  for (const std::string& name : ArrayNames(algorithm)) {
    if (!wanted(name)) continue;
    for (const double entry : GetArray(algorithm, 0, "grad." + name)) sum += entry * entry;
  }
  return std::sqrt(sum);
}

bool OfActor(const std::string& name) { return StartsWithOneOf(name, {"actor."}); }
bool OfCritic(const std::string& name) { return StartsWithOneOf(name, {"critic."}); }
// All other nets that learn: whatever the algorithm learns about costs.
bool OfConstraint(const std::string& name) {
  return !StartsWithOneOf(name, {"actor.", "critic.", "target_", "log_alpha", "multiplier_raw", "observation."});
}

TEST_P(RecordedStatistics, HaveTheNormOfTheGradientsOfEachGroupOfNets) {
  for (const char* kernels : {"fused", "tensor"}) {
    AlgorithmConfig config = SmallConfig(GetParam(), 1, kernels);
    if (config.epoch_rows > 0)
      config.learner.set_passes(1), config.learner.set_batch_size(config.epoch_rows);  // one gradient per update
    config.planning.set_policy_updates(1);
    const auto algorithm = MakeAlgorithm(config);
    EXPECT_TRUE(std::isnan(algorithm->GetStats()[0].critic_gradient_norm())) << "no update yet";
    double actor = 0, critic = 0, constraint = 0;
    const int updates = 3;
    const bool delayed =
        config.algorithm == "safe_layer_td3";  // its actor is stepped in the first and the third update
    for (int u = 0; u < updates; ++u) {
      algorithm->Update(RandomBatch(config, u));
      if (!delayed || u % 2 == 0) actor += NormOf(*algorithm, OfActor) / (delayed ? 2 : updates);
      critic += NormOf(*algorithm, OfCritic) / updates;
      constraint += NormOf(*algorithm, OfConstraint) / updates;
    }
    const Stats stats = algorithm->GetStats();
    EXPECT_NEAR(stats[0].actor_gradient_norm(), actor, 1e-6 * actor) << kernels;
    EXPECT_NEAR(stats[0].critic_gradient_norm(), critic, 1e-6 * critic) << kernels;
    EXPECT_GT(actor, 0);
    if (GetParam() == "safe_loop") continue;  // its ensemble takes many steps in an update
    if (constraint == 0) {
      EXPECT_TRUE(std::isnan(stats[0].constraint_gradient_norm())) << "it learns no constraint";
    } else {
      EXPECT_NEAR(stats[0].constraint_gradient_norm(), constraint, 1e-6 * constraint) << kernels;
    }
  }
}

TEST_P(RecordedStatistics, HaveTheValuesOfTheCritics) {
  const AlgorithmConfig config = SmallConfig(GetParam(), 2);
  const auto algorithm = MakeAlgorithm(config);
  EXPECT_TRUE(std::isnan(algorithm->GetStats()[1].q_min())) << "no update yet";
  std::vector<Stats> each;
  for (int u = 0; u < 3; ++u) {
    const auto single = MakeAlgorithm(config);
    single->Load(algorithm->Save());
    single->ResetStats();
    for (const auto& one : {single.get(), algorithm.get()}) one->Update(RandomBatch(config, u));
    each.push_back(single->GetStats());
  }
  const Stats stats = algorithm->GetStats();
  for (int m = 0; m < 2; ++m) {
    EXPECT_NEAR(stats[m].q_mean(), (each[0][m].q_mean() + each[1][m].q_mean() + each[2][m].q_mean()) / 3, 1e-12);
    if (IsOnPolicy(GetParam())) {
      EXPECT_TRUE(std::isnan(stats[m].q_gap())) << "there is one critic of the reward";
    } else {
      EXPECT_NEAR(stats[m].q_gap(), (each[0][m].q_gap() + each[1][m].q_gap() + each[2][m].q_gap()) / 3, 1e-12);
      EXPECT_GT(stats[m].q_gap(), 0);
    }
    EXPECT_EQ(stats[m].q_min(), std::min(each[0][m].q_min(), std::min(each[1][m].q_min(), each[2][m].q_min())));
    EXPECT_LT(stats[m].q_min(), stats[m].q_mean());
  }
  algorithm->ResetStats();
  EXPECT_TRUE(std::isnan(algorithm->GetStats()[0].q_min()));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
