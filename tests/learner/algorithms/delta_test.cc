// The threshold delta without nets: the learned rule keeps its numbers, the one of mode peak (docs/algorithms.md 5.6)
// follows acceptable episodes and does not fall to 0.
#include "learner/algorithms/delta.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/safety/risk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/nn/named_stream.h"
#include "tests/learner/algorithms/arrays.h"
#include "tests/learner/algorithms/delta_plant.h"

namespace datacom::learner {
namespace {

using ::testing::ElementsAre;

AlgorithmConfig ConfigOf(const std::vector<std::string>& modes, double budget, int horizon) {
  AlgorithmConfig config;
  config.algorithm = "datacom";
  config.horizon = horizon;
  config.learner.set_discount(0.99);
  for (const std::string& mode : modes) {
    config.members.emplace_back();
    config.members.back().hyper.set_delta_mode(mode);
    config.members.back().hyper.set_cost_budget(budget);
  }
  return config;
}

std::vector<double> DoublesOf(const std::string& bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(double));
  return numbers;
}

bool Apply(Delta* delta, int member, const std::vector<float>& costs, const std::vector<double>& cvar) {
  return delta->ApplyEpisode(member, static_cast<int>(costs.size()) - 1, costs.data(), cvar.data());
}

// Written down before mode peak existed: budget 5, horizon 50, rate 0.05, w = 1.
TEST(LearnedDelta, KeepsItsNumbersAndTheBytesOfItsState) {
  Delta delta(ConfigOf({"learned", "fixed"}, 5, 50));
  ASSERT_TRUE(Apply(&delta, 0, {0, 0.5f, -1, 0.25f}, {1, 0.8, 0.6, 0.4}));
  EXPECT_DOUBLE_EQ(delta.gradient(0), -0.7310585786300049);
  ASSERT_TRUE(Apply(&delta, 0, {0, 0.5f, -1, 0.25f}, {1, 0.8, 0.6, 0.4}));
  ASSERT_TRUE(Apply(&delta, 0, {0, 20, 30, 10}, {1, 0.8, 0.6, 0.4}));
  EXPECT_DOUBLE_EQ(delta.gradient(0), 0.75026312523951211);
  EXPECT_DOUBLE_EQ(delta.value(0), 1.3968665805177902);
  EXPECT_DOUBLE_EQ(ArrayAccess::RawOfDelta(delta, 0), 1.1126838880585541);
  EXPECT_EQ(delta.steps(0), 3u);
  const std::vector<double> saved = DoublesOf(delta.Save());  // value, first and second moment, steps of each member
  ASSERT_EQ(saved.size(), 8u);
  EXPECT_DOUBLE_EQ(saved[0], 1.1126838880585541);
  EXPECT_DOUBLE_EQ(saved[1], -0.050859173259652904);
  EXPECT_DOUBLE_EQ(saved[2], 0.0016444717472512385);
  EXPECT_THAT(std::vector<double>(saved.begin() + 3, saved.end()), ElementsAre(3, 1, 0, 0, 0));
}

// A member's bytes are its ScalarAdam (4 numbers) and its Peak (3), if any member is in that mode.
class SavedDelta : public ::testing::TestWithParam<std::pair<std::vector<std::string>, int>> {};

INSTANTIATE_TEST_SUITE_P(
    Modes, SavedDelta,
    ::testing::Values(std::pair{std::vector<std::string>{"learned", "learned", "fixed", "learned"}, 4},
                      std::pair{std::vector<std::string>{"peak", "learned", "fixed", "peak"}, 4 + 3}));

TEST_P(SavedDelta, ContinuesExactlyFromItsBytesAlsoBesideMembersOfOtherModes) {
  const auto& [modes, numbers] = GetParam();
  const AlgorithmConfig config = ConfigOf(modes, 5, 20);
  Delta straight(config), resumed(config);
  NamedStream stream(NamedKey("test.delta.save", {}));
  const auto step = [&](const std::vector<Delta*>& deltas) {
    std::vector<float> costs(16);
    std::vector<double> cvar(16);
    for (float& cost : costs) cost = static_cast<float>(stream.Uniform(-1, 2));
    for (double& value : cvar) value = stream.Uniform(0, 3);
    for (Delta* delta : deltas) {
      for (int member = 0; member < 4; ++member) ASSERT_TRUE(Apply(delta, member, costs, cvar));
    }
  };
  for (int episode = 0; episode < 7; ++episode) step({&straight});
  step({&resumed});  // Load must overwrite this
  resumed.Load(straight.Save());
  for (int episode = 0; episode < 7; ++episode) step({&straight, &resumed});
  EXPECT_EQ(resumed.Save(), straight.Save());
  EXPECT_EQ(straight.Save().size(), 4 * numbers * sizeof(double)) << "equal parts";
  for (int member = 0; member < 4; ++member) EXPECT_EQ(resumed.value(member), straight.value(member)) << member;
  EXPECT_EQ(straight.steps(0), 14u);
}

TEST(Delta, AnEpisodeThatIsNotFiniteChangesNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  Delta delta(ConfigOf({"peak"}, 5, 20));
  ASSERT_TRUE(Apply(&delta, 0, {0, 1, 2}, {1, 2, 3}));
  const std::string before = delta.Save();
  EXPECT_FALSE(Apply(&delta, 0, {0, nan, 2}, {1, 2, 3}));
  EXPECT_FALSE(Apply(&delta, 0, {0, infinite, 2}, {1, 2, 3}));
  EXPECT_FALSE(Apply(&delta, 0, {0, 1, 2}, {1, static_cast<double>(nan), 3}));
  EXPECT_FALSE(Apply(&delta, 0, {0, 1, 2}, {static_cast<double>(infinite), 2, 3}));
  EXPECT_EQ(delta.Save(), before);
}

// The mean cost of an episode in the last third of a run.
double LateCost(Delta* delta, DeltaPlant* plant, int episodes) {
  const int from = episodes * 2 / 3;
  double mean = 0;
  for (int episode = 1; episode <= episodes; ++episode) {
    const double cost = plant->Play(delta->value(0));
    EXPECT_TRUE(Apply(delta, 0, plant->costs(), plant->cvar()));
    if (episode > from) mean += cost / (episodes - from);
  }
  return mean;
}

// Its episodes cost the budget at `ratio` times the converted budget.
DeltaPlant PlantOf(int horizon, double budget, double ratio) {
  const double converted = DiscountedBudget(budget, horizon, 0.99);
  return DeltaPlant(horizon, 8 * budget, ratio * converted * std::sqrt(7.0), /*seed=*/1);
}

double RawOf(double delta) { return delta + std::log(-std::expm1(-delta)); }  // softplus gives delta

std::string Named(int horizon, double budget, double ratio) {
  return "horizon " + std::to_string(horizon) + ", budget " + std::to_string(budget) + ", ratio " +
         std::to_string(ratio);
}

// In the plants that cost too much, most predictions are too large, so it ends above.
TEST(LearnedDelta, EndsAtTheConvertedBudgetOrAboveItWhateverEpisodesCost) {
  for (const int horizon : {100, 300, 1000}) {
    for (const double budget : {1.0, 40.0}) {
      const double converted = DiscountedBudget(budget, horizon, 0.99);
      for (const double ratio : {0.4, 1.6}) {
        Delta delta(ConfigOf({"learned"}, budget, horizon));
        ArrayAccess::RawOfDelta(delta, 0) = RawOf(1.5 * converted);  // at most 1,500 x 0.05 away
        DeltaPlant plant = PlantOf(horizon, budget, ratio);
        const double cost = LateCost(&delta, &plant, 1500);
        if (ratio > 1) {
          EXPECT_NEAR(delta.value(0) / converted, 1, 0.15) << Named(horizon, budget, ratio);
          EXPECT_LT(cost / budget, 0.6) << Named(horizon, budget, ratio);
        } else {
          EXPECT_GT(delta.value(0) / converted, 0.9) << Named(horizon, budget, ratio);
          EXPECT_GT(cost / budget, 3) << Named(horizon, budget, ratio);
        }
      }
    }
  }
}

// By hand, with episodes of H rows: J is 10 after the first, 10 + (0.1 / 0.19) (0 - 10) after the second and so on.
TEST(PeakDelta, FollowsTheLargestRiskOfEpisodesThatCostNoMoreThanTheBudgetOrTheirMean) {
  AlgorithmConfig config = ConfigOf({"peak"}, 1, 2);
  config.members[0].hyper.set_delta_margin(1.5);
  config.members[0].hyper.set_init_delta(40);
  Delta delta(config);
  EXPECT_NEAR(delta.value(0), 40, 1e-9);
  EXPECT_EQ(delta.cost(0), std::nullopt);
  ASSERT_TRUE(Apply(&delta, 0, {7, 4, 6}, {1, 8, 2}));  // costs[0] counts as 0
  EXPECT_DOUBLE_EQ(*delta.cost(0), 10);
  EXPECT_DOUBLE_EQ(ArrayAccess::RawOfDelta(delta, 0), 8) << "the first episode counts whatever it costs";
  EXPECT_DOUBLE_EQ(delta.value(0), 12);
  ASSERT_TRUE(Apply(&delta, 0, {0, -5, 0}, {3, 2, 4}));
  EXPECT_DOUBLE_EQ(*delta.cost(0), 10 - 10 / 1.9);
  EXPECT_DOUBLE_EQ(ArrayAccess::RawOfDelta(delta, 0), 8 + 0.05 * (4 - 8));
  ASSERT_TRUE(Apply(&delta, 0, {0, 20, 0}, {0, 100, 0}));
  EXPECT_DOUBLE_EQ(ArrayAccess::RawOfDelta(delta, 0), 7.8) << "it costs more than the budget and more than the mean";
  ASSERT_TRUE(Apply(&delta, 0, {0, 3}, {1, 6}));  // half an episode
  EXPECT_DOUBLE_EQ(ArrayAccess::RawOfDelta(delta, 0), 7.8 + 0.025 * (6 - 7.8))
      << "more than the budget, less than the mean";
  EXPECT_DOUBLE_EQ(delta.value(0), 1.5 * ArrayAccess::RawOfDelta(delta, 0));
  EXPECT_EQ(delta.gradient(0), 0);
  EXPECT_EQ(delta.steps(0), 4u);
}

// Largest risks are uniform in [0, 1], and the map lets none exceed delta. P is then E min(X, delta) = delta - delta^2
// / 2, so delta comes to rest where margin (1 - delta / 2) = 1.
TEST(PeakDelta, ComesToRestAboveNothingWhereTheMapKeepsEpisodesBelowIt) {
  for (const double margin : {1.1, 1.5}) {
    AlgorithmConfig config = ConfigOf({"peak"}, 0, 1);
    config.members[0].hyper.set_delta_margin(margin);
    Delta delta(config);
    NamedStream stream(NamedKey("test.delta.rest", {}));
    double mean = 0;
    for (int episode = 1; episode <= 40000; ++episode) {
      ASSERT_TRUE(Apply(&delta, 0, {0, 0}, {0, std::min(stream.Uniform(), delta.value(0))}));
      if (episode > 20000) mean += delta.value(0) / 20000;
    }
    EXPECT_NEAR(mean, 2 * (1 - 1 / margin), 0.03) << margin;
  }
}

// 10 spent evenly over 100 rows is 10 / 100 (1 - 0.99^100) / 0.01.
TEST(PeakDelta, NeverForbidsWhatTheBudgetAllows) {
  Delta delta(ConfigOf({"peak"}, 10, 100));
  std::vector<float> costs(101, 0.0f);
  for (int episode = 0; episode < 200; ++episode) ASSERT_TRUE(Apply(&delta, 0, costs, std::vector<double>(101, 0.01)));
  EXPECT_NEAR(ArrayAccess::RawOfDelta(delta, 0), 0.01, 1e-9);
  EXPECT_NEAR(delta.value(0), 6.3396766, 1e-6);
}

// Without authority of the map every risk is met.
TEST(PeakDelta, StaysAboveTheMeanOfTheLargestRisksThatTheMapCannotLower) {
  Delta delta(ConfigOf({"peak"}, 0, 1));
  NamedStream stream(NamedKey("test.delta.authority", {}));
  for (int episode = 1; episode <= 4000; ++episode) {
    ASSERT_TRUE(Apply(&delta, 0, {0, 3}, {stream.Uniform(), 5 + stream.Uniform()}));
    ASSERT_GT(delta.value(0), 5.5) << episode;
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
