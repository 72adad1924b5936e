// For every algorithm: the statistics of gradients and critics; and that both kinds of kernels learn the same.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

class Agreement : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Agreement, ::testing::ValuesIn(RegisteredAlgorithms()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Variants, Agreement,
                         ::testing::Values("datacom_known", "iqn_datacom_known", "sac_robust", "datacom_robust",
                                           "datacom_peak", "datacom_priced", "sac_layer_norm", "datacom_layer_norm"),
                         [](const auto& info) { return info.param; });

// Nets and batches are so large that the rounding of single rows weighs little. deploy/dev/gpu_trial runs this on a GPU
// and reads the properties.
TEST_P(Agreement, AfterFortyUpdatesParametersOfBothKindsOfKernelsDifferByLessThanAThousandth) {
  AlgorithmConfig fused = SmallConfig(GetParam(), 3, "fused"), tensor = SmallConfig(GetParam(), 3, "tensor");
  for (AlgorithmConfig* config : {&fused, &tensor}) {
    SetAllHidden({64, 64}, config);
    if (!TakesNewRows(GetParam())) config->learner.set_batch_size(32);
    if (config->epochs > 0) config->epochs = 80;  // of which half are made
    for (MemberConfig& member : config->members) member.hyper.clear_actor_lr();
  }
  const auto a = MakeAlgorithm(fused), b = MakeAlgorithm(tensor);
  const std::vector<float> start = AllValues(*a, 0);
  for (uint64_t u = 0; u < 40; ++u) {
    const Batch batch = RandomBatch(fused, u);
    a->Update(batch);
    b->Update(batch);
    if (u % 10 != 0) continue;
    ApplyEpisodes(a.get(), fused, u);
    ApplyEpisodes(b.get(), tensor, u);
  }
  double apart = 0, size = 0, largest = 0;
  for (int m = 0; m < 3; ++m) {
    const std::vector<float> x = AllValues(*a, m), y = AllValues(*b, m);
    for (size_t i = 0; i < x.size(); ++i) {
      const double difference = static_cast<double>(x[i]) - y[i];
      apart += difference * difference, size += static_cast<double>(x[i]) * x[i];
      largest = std::max(largest, std::abs(difference));
    }
  }
  const double relative = std::sqrt(apart / size);
  RecordProperty("relative_difference", absl::StrCat(relative));
  RecordProperty("largest_difference", absl::StrCat(largest));
  EXPECT_LT(relative, 1e-3) << "of all parameters; the largest difference of one is " << largest;
  EXPECT_NE(AllValues(*a, 0), start);
  EXPECT_EQ(Diverged(*a), (std::vector<bool>{0, 0, 0})) << "frozen members would agree, too";
  EXPECT_EQ(Diverged(*b), (std::vector<bool>{0, 0, 0}));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
