// The controller of the multiplier (docs/algorithms.md 6.1), with numbers by hand.
#include "learner/algorithms/multiplier.h"

#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/learner/algorithms/testing.h"

namespace datacom::learner {
namespace {

AlgorithmConfig ConfigOf(double budget, double unit) {
  AlgorithmConfig config = SmallConfig("datacom_priced", 2);
  config.horizon = 100;
  v1::Hyper& hyper = config.members[0].hyper;
  hyper.set_cost_budget(budget), hyper.set_cost_unit(unit);
  hyper.set_multiplier_proportional(0.1), hyper.set_multiplier_integral(0.02), hyper.set_multiplier_limit(0.3);
  config.members[1].hyper.set_multiplier_mode("none");
  return config;
}

// 49 silent episodes of a whole horizon, each at this cost.
void Silence(Multiplier* multiplier, double cost) {
  for (int episode = 0; episode < 49; ++episode) {
    multiplier->ApplyEpisode(0, 100, cost);
    ASSERT_EQ(multiplier->value(0), 0);
  }
}

// n is 1 - 0.9^49 after the silence, so the episode of 20 has the weight 0.1 / (1 - 0.9^50) in J. It is the first that
// the sum counts. The last episode has half the horizon.
TEST(Multiplier, IsAPartOfTheMeanErrorAndASumOfItThatCountsRows) {
  Multiplier multiplier(ConfigOf(40, 1));
  EXPECT_EQ(multiplier.value(0), 0) << "no episode yet";
  Silence(&multiplier, 60);
  multiplier.ApplyEpisode(0, 100, 20);
  const double mean = 60 - 40 * 0.1 / (1 - std::pow(0.9, 50)), error = (mean - 40) / 40;
  EXPECT_NEAR(multiplier.value(0), 0.1 * error + 0.02 * error, 1e-12);
  multiplier.ApplyEpisode(0, 50, 1000);
  EXPECT_NEAR(multiplier.value(0), 0.1 + 0.02 * error + 0.01, 1e-12) << "the error is at most 1";
  EXPECT_EQ(multiplier.value(1), 0);
}

TEST(Multiplier, FadesWithACostBelowTheBudget) {
  Multiplier multiplier(ConfigOf(40, 1));
  ArrayAccess::SetIntegral(&multiplier, 0, 0.2);
  EXPECT_DOUBLE_EQ(multiplier.value(0), 0.2);
  multiplier.ApplyEpisode(0, 100, 20);  // n is 1
  EXPECT_NEAR(multiplier.value(0), 38.0 / 40 * (0.2 - 0.1 * 0.05 - 0.02 * 0.05), 1e-15);
}

TEST(Multiplier, StaysWithinItsLimitAndReturnsWithoutWindUp) {
  Multiplier multiplier(ConfigOf(0, 5));  // the unit scales the error of a budget of 0
  for (int episode = 0; episode < 150; ++episode) multiplier.ApplyEpisode(0, 100, 5);
  EXPECT_EQ(multiplier.value(0), 0.3);
  Multiplier budget(ConfigOf(10, 5));
  for (int episode = 0; episode < 150; ++episode) budget.ApplyEpisode(0, 100, 1000);
  EXPECT_EQ(budget.value(0), 0.3);
  for (int episode = 0; episode < 100; ++episode) budget.ApplyEpisode(0, 100, 0);
  EXPECT_EQ(budget.value(0), 0);
  for (int episode = 0; episode < 60; ++episode) budget.ApplyEpisode(0, 100, 1000);
  EXPECT_EQ(budget.value(0), 0.3) << "it does not have to make up for the episodes without cost";
}

TEST(Multiplier, GoesOnFromItsBytes) {
  const AlgorithmConfig config = ConfigOf(40, 1);
  Multiplier straight(config), resumed(config);
  Silence(&straight, 70);
  resumed.ApplyEpisode(0, 100, 5);
  resumed.Load(straight.Save());
  for (int episode = 0; episode < 3; ++episode) {
    straight.ApplyEpisode(0, 80, 50), resumed.ApplyEpisode(0, 80, 50);
    EXPECT_EQ(resumed.value(0), straight.value(0));
  }
  EXPECT_GT(straight.value(0), 0);
  EXPECT_EQ(resumed.Save(), straight.Save());
}

TEST(DatacomWithAMultiplier, LearnsLikeOneWithoutUntilAnEpisodeCostsMoreThanTheBudget) {
  AlgorithmConfig priced = SmallConfig("datacom_priced", 2), plain = SmallConfig("datacom", 2);
  for (AlgorithmConfig* const config : {&priced, &plain}) {
    for (MemberConfig& member : config->members) member.hyper.set_delta_mode("fixed");
  }
  priced.members[0].hyper.set_cost_budget(1000), plain.members[0].hyper.set_cost_budget(1000);
  plain.members[1].hyper.set_cost_budget(1);
  const auto with = MakeAlgorithm(priced), without = MakeAlgorithm(plain);
  for (int u = 0; u < 3; ++u) {
    ApplyEpisodes(with.get(), priced, u), ApplyEpisodes(without.get(), plain, u);
    with->Update(RandomBatch(priced, u)), without->Update(RandomBatch(plain, u));
  }
  EXPECT_EQ(with->GetStats()[0].multiplier(), 0);
  EXPECT_GT(with->GetStats()[1].multiplier(), 0.1);
  EXPECT_TRUE(std::isnan(without->GetStats()[0].multiplier()));
  priced.members[0].hyper.set_multiplier_mode("none");
  EXPECT_TRUE(std::isnan(MakeAlgorithm(priced)->GetStats()[0].multiplier())) << "only member 1 has one";
  for (const char* array : {"actor.mean.0.weight", "actor.log_std.1.bias", "critic.0.0.weight", "log_alpha"}) {
    EXPECT_EQ(GetArray(*with, 0, array), GetArray(*without, 0, array)) << array;
    EXPECT_NE(GetArray(*with, 1, array), GetArray(*without, 1, array)) << array;
  }
}

TEST(DatacomWithAMultiplier, FreezesAMemberWhoseEpisodeHasACostThatIsNotFinite) {
  const AlgorithmConfig config = SmallConfig("datacom_priced", 2);
  const auto algorithm = MakeAlgorithm(config);
  ApplyEpisodes(algorithm.get(), config, 1);
  const double before = algorithm->GetStats()[0].multiplier();
  const std::vector<float> z(2 * (config.q_dim + config.x_dim), 0.5f), costs{0, HUGE_VALF};
  algorithm->ApplyEpisodes({{0, 1, z.data(), costs.data()}});
  EXPECT_EQ(Diverged(*algorithm), (std::vector<bool>{true, false}));
  EXPECT_EQ(algorithm->GetStats()[0].multiplier(), before);
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
