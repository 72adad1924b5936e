// The threshold delta without nets: the learned rule keeps its numbers, the controlled one (docs/algorithms.md 5.6)
// follows its equations and brings a plant to its budget, the one of mode peak (5.7) does not fall to 0.
#include "learner/algorithms/delta.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/safety/risk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/nn/named_stream.h"
#include "tests/learner/algorithms/delta_plant.h"

namespace datacom::learner {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

AlgorithmConfig ConfigOf(const std::vector<std::string>& modes, double budget, int horizon) {
  AlgorithmConfig config;
  config.algorithm = "datacom";
  config.horizon = horizon;
  config.discount = 0.99;
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

// An episode of 100 rows, of which half cost something, and a constant CVaR.
void ApplyHalf(Delta* delta, double total, double cvar) {
  std::vector<float> costs(101, -1.0f);
  std::fill(costs.begin() + 1, costs.begin() + 51, static_cast<float>(total / 50));
  ASSERT_TRUE(Apply(delta, 0, costs, std::vector<double>(101, cvar)));
}

// Written down before the controller existed: budget 5, horizon 50, rate 0.05, w = 1.
TEST(LearnedDelta, KeepsItsNumbersAndTheBytesOfItsState) {
  Delta delta(ConfigOf({"learned", "fixed"}, 5, 50));
  ASSERT_TRUE(Apply(&delta, 0, {0, 0.5f, -1, 0.25f}, {1, 0.8, 0.6, 0.4}));
  EXPECT_DOUBLE_EQ(delta.gradient(0), -0.7310585786300049);
  ASSERT_TRUE(Apply(&delta, 0, {0, 0.5f, -1, 0.25f}, {1, 0.8, 0.6, 0.4}));
  ASSERT_TRUE(Apply(&delta, 0, {0, 20, 30, 10}, {1, 0.8, 0.6, 0.4}));
  EXPECT_DOUBLE_EQ(delta.gradient(0), 0.75026312523951211);
  EXPECT_DOUBLE_EQ(delta.value(0), 1.3968665805177902);
  EXPECT_DOUBLE_EQ(delta.raw(0), 1.1126838880585541);
  EXPECT_EQ(delta.steps(0), 3u);
  EXPECT_EQ(delta.control(0), nullptr);
  const std::vector<double> saved = DoublesOf(delta.Save());  // value, first and second moment, steps of each member
  ASSERT_EQ(saved.size(), 8u);
  EXPECT_DOUBLE_EQ(saved[0], 1.1126838880585541);
  EXPECT_DOUBLE_EQ(saved[1], -0.050859173259652904);
  EXPECT_DOUBLE_EQ(saved[2], 0.0016444717472512385);
  EXPECT_THAT(std::vector<double>(saved.begin() + 3, saved.end()), ElementsAre(3, 1, 0, 0, 0));
}

TEST(ControlledDelta, StartsAtTheLargerOfItsStartAndTheConvertedBudget) {
  AlgorithmConfig config = ConfigOf({"controlled", "controlled"}, 30, 50);
  config.members[0].hyper.set_init_delta(1), config.members[1].hyper.set_init_delta(40);
  const Delta delta(config);
  EXPECT_NEAR(delta.value(0), 23.699636, 1e-6);  // 30 / 50 (1 - 0.99^50) / 0.01
  EXPECT_NEAR(delta.value(1), 40, 1e-9);
}

// By hand: ten steps of cost 1, so J = 10 and e = 1; D_0 = 0.99 (1 - 0.99^10) / 0.01 and so on.
TEST(ControlledDelta, TakesTheStepOfOneEpisode) {
  Delta delta(ConfigOf({"controlled"}, 5, 50));
  std::vector<float> costs(51, -1.0f);
  std::fill(costs.begin() + 1, costs.begin() + 11, 1.0f);
  ASSERT_TRUE(Apply(&delta, 0, costs, std::vector<double>(51, 2)));
  const DeltaControl::State& state = delta.control(0)->state();
  EXPECT_DOUBLE_EQ(state.cost, 10);
  EXPECT_NEAR(state.calibration, 0.03838361062618352, 1e-12);
  EXPECT_DOUBLE_EQ(state.integral, 0.02);
  EXPECT_DOUBLE_EQ(state.floor, 2);
  EXPECT_EQ(delta.gradient(0), 1);
  EXPECT_NEAR(delta.value(0), 2.3597300167142152, 1e-12);
  EXPECT_EQ(delta.steps(0), 1u);
}

// The equations of docs/algorithms.md 5.6, written down slowly: sums over all episodes and all pairs of
// states. Counts in `reached` how often each bound holds.
class Restated {
 public:
  Restated(double d, double u, double start, double gain_p, double gain_i, int horizon, double gamma,
           std::map<std::string, int>* reached)
      : d_(d),
        m_(std::max(d, u)),
        gain_p_(gain_p),
        gain_i_(gain_i),
        horizon_(horizon),
        gamma_(gamma),
        reached_(reached) {
    C_ = 0;
    for (int t = 0; t < horizon; ++t) C_ += m_ / horizon * std::pow(gamma, t);
    start_ = std::max(start, C_);
  }

  void Add(const std::vector<float>& costs, const std::vector<double>& cvar) {
    const int length = static_cast<int>(costs.size()) - 1;
    const double w = std::min(1.0, static_cast<double>(length) / horizon_);
    std::vector<double> c(costs.size(), 0.0), safe;
    for (int i = 1; i <= length; ++i) c[i] = std::max(0.0, static_cast<double>(costs[i]));
    double total = 0, excess = 0;
    for (int i = 0; i <= length; ++i) {
      double D = 0;
      for (int t = i; t <= length; ++t) D += std::pow(gamma_, t - i) * c[t];
      total += c[i];
      excess += (cvar[i] - D) / (length + 1);
      if (c[i] == 0) safe.push_back(cvar[i]);
    }
    std::sort(safe.begin(), safe.end());
    const double quartile = safe[(safe.size() - 1) / 4];
    f_ = totals_.empty() ? quartile : f_ + 0.05 * w * (quartile - f_);
    b_ += 0.05 * w * (excess - b_);
    totals_.push_back(total), shares_.push_back(w);
    double weights = 0, sum = 0, weight = 1;  // every episode counts once, and less with every later row
    for (size_t k = totals_.size(); k-- > 0;) {
      weights += weight, sum += weight * totals_[k];
      weight *= 1 - 0.1 * shares_[k];
    }
    J_ = sum / weights;
    const double e = std::clamp((J_ - d_) / m_, -1.0, 1.0), push = e > 0 ? e : e / 5;
    const double base = std::max(start_ + b_ * std::min(1.0, m_ / J_), C_ / 2);
    const double floor = f_ * std::pow(std::min(1.0, m_ / (4 * J_)), 2);
    const double low = std::min(base, std::max(C_ / 100, floor)), high = 2 * std::max(start_, base);
    (*reached_)["base is half of C"] += base == C_ / 2;
    (*reached_)["low is f"] += low == floor;
    (*reached_)["low is a hundredth of C"] += low == C_ / 100;
    (*reached_)["low is base"] += low == base;
    kappa_ += gain_i_ * w * push;
    (*reached_)["kappa stops at high"] += base * std::exp(-kappa_) > high;
    (*reached_)["kappa stops at low"] += base * std::exp(-kappa_) < low;
    if (base * std::exp(-kappa_) > high) kappa_ = std::log(base / high);
    if (base * std::exp(-kappa_) < low) kappa_ = std::log(base / low);
    delta_ = std::max(low, std::min(high, base * std::exp(-(gain_p_ * push + kappa_))));
    (*reached_)["delta is high"] += delta_ == high;
    (*reached_)["delta is low"] += delta_ == low;
  }

  double delta() const { return delta_; }
  double J() const { return J_; }
  double b() const { return b_; }
  double f() const { return f_; }
  double kappa() const { return kappa_; }

 private:
  double d_, m_, gain_p_, gain_i_;
  int horizon_;
  double gamma_, C_, start_ = 0, b_ = 0, f_ = 0, kappa_ = 0, J_ = 0, delta_ = 0;
  std::vector<double> totals_, shares_;
  std::map<std::string, int>* reached_;
};

TEST(ControlledDelta, FollowsItsEquations) {
  constexpr int kHorizon = 20;
  NamedStream stream(NamedKey("test.delta.equations", {}));
  std::map<std::string, int> reached;
  for (const double budget : {0.0, 0.3, 5.0, 40.0}) {
    for (const double unit : {0.01, 1.0, 8.0}) {
      AlgorithmConfig config = ConfigOf({"controlled"}, budget, kHorizon);
      v1::Hyper& hyper = config.members[0].hyper;
      hyper.set_cost_unit(unit), hyper.set_init_delta(2);
      hyper.set_delta_proportional(0.7), hyper.set_delta_integral(0.15);
      Delta delta(config);
      Restated restated(budget, unit, std::log1p(std::exp(2.0)), 0.7, 0.15, kHorizon, 0.99, &reached);
      for (int episode = 0; episode < 240; ++episode) {
        const int length = 1 + static_cast<int>(stream.Uniform() * (kHorizon + 3));
        // Times of low and high costs and predictions follow one another, so that delta reaches all of its bounds.
        const double scale = std::max(budget, unit);
        const double size = std::vector<double>{0.1, 3, 40}[episode / 40 % 3] * scale / kHorizon;
        const double seen = std::vector<double>{8, 0.02}[episode / 60 % 2] * scale;
        std::vector<float> costs;
        std::vector<double> cvar;
        for (int i = 0; i <= length; ++i) costs.push_back(static_cast<float>(size * stream.Uniform(-1, 2)));
        for (int i = 0; i <= length; ++i) cvar.push_back(seen * stream.Uniform());
        ASSERT_TRUE(Apply(&delta, 0, costs, cvar));
        restated.Add(costs, cvar);
        const std::string where = "budget " + std::to_string(budget) + ", unit " + std::to_string(unit) + ", episode " +
                                  std::to_string(episode);
        const DeltaControl::State& state = delta.control(0)->state();
        ASSERT_NEAR(state.cost, restated.J(), 1e-9 * (1 + restated.J())) << where;
        ASSERT_NEAR(state.calibration, restated.b(), 1e-9 * (1 + std::abs(restated.b()))) << where;
        ASSERT_NEAR(state.floor, restated.f(), 1e-9 * (1 + restated.f())) << where;
        ASSERT_NEAR(delta.raw(0), restated.kappa(), 1e-9) << where;
        ASSERT_NEAR(delta.value(0), restated.delta(), 1e-9 * (1 + restated.delta())) << where;
      }
    }
  }
  for (const auto& [bound, times] : reached) EXPECT_GT(times, 0) << bound << ": no case reaches it";
}

// IQN-ATACOM's budget is discounted: C. It then steers to the undiscounted budget whose conversion is C.
TEST(ControlledDelta, ADiscountedBudgetMeansTheEpisodeThatSpendsItEvenly) {
  AlgorithmConfig config = ConfigOf({"controlled"}, 30, 50), discounted = config;
  discounted.algorithm = "iqn_datacom";
  discounted.members[0].hyper.set_cost_budget(DiscountedBudget(30, 50, 0.99));
  Delta a(config), b(discounted);
  EXPECT_NEAR(a.value(0), b.value(0), 1e-9);
  for (const float cost : {0.1f, 5.0f, 0.3f, 0.7f}) {
    const std::vector<float> costs(51, cost);
    const std::vector<double> cvar(51, 10);
    ASSERT_TRUE(Apply(&a, 0, costs, cvar));
    ASSERT_TRUE(Apply(&b, 0, costs, cvar));
    EXPECT_THAT(b.value(0), DoubleNear(a.value(0), 1e-9));
  }
}

TEST(ControlledDelta, LeavesABoundSoonAfterTheErrorChangesItsSign) {
  AlgorithmConfig config = ConfigOf({"controlled"}, 10, 100);
  config.members[0].hyper.set_init_delta(0);
  Delta open(config), tight(config);
  for (int episode = 0; episode < 400; ++episode) ApplyHalf(&open, 0, 4), ApplyHalf(&tight, 100, 0.01);
  const double high = open.value(0), low = tight.value(0);
  EXPECT_NEAR(high, 20.679353, 1e-5);
  EXPECT_NEAR(low, 0.063397, 1e-5);
  // An integral that had gone on would be at -1.6 and 8 and need 55 and 1,000 episodes.
  for (int episode = 0; episode < 6; ++episode) ApplyHalf(&open, 40, 4);
  EXPECT_LT(open.value(0), high / 2);
  for (int episode = 0; episode < 40; ++episode) ApplyHalf(&tight, 0, 0.01);
  EXPECT_GT(tight.value(0), 1.2 * low);
}

TEST(ControlledDelta, WithABudgetOfNothingAnEpisodeWithoutCostDoesNotLoosen) {
  Delta delta(ConfigOf({"controlled"}, 0, 100));
  for (int episode = 0; episode < 30; ++episode) ApplyHalf(&delta, 0.5, 1);
  const double before = delta.raw(0);
  EXPECT_GT(before, 0);
  for (int episode = 0; episode < 30; ++episode) ApplyHalf(&delta, 0, 1);
  EXPECT_GE(delta.raw(0), before);
}

// A member's bytes are its ScalarAdam (4 numbers), its DeltaControl (5) and its DeltaPeak (3), if any member has such.
class SavedDelta : public ::testing::TestWithParam<std::pair<std::vector<std::string>, int>> {};

INSTANTIATE_TEST_SUITE_P(
    Modes, SavedDelta,
    ::testing::Values(std::pair{std::vector<std::string>{"controlled", "learned", "fixed", "controlled"}, 4 + 5},
                      std::pair{std::vector<std::string>{"peak", "learned", "fixed", "peak"}, 4 + 3},
                      std::pair{std::vector<std::string>{"peak", "controlled", "learned", "fixed"}, 4 + 5 + 3}));

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
  for (const char* mode : {"controlled", "peak"}) {
    Delta delta(ConfigOf({mode}, 5, 20));
    ASSERT_TRUE(Apply(&delta, 0, {0, 1, 2}, {1, 2, 3}));
    const std::string before = delta.Save();
    EXPECT_FALSE(Apply(&delta, 0, {0, nan, 2}, {1, 2, 3})) << mode;
    EXPECT_FALSE(Apply(&delta, 0, {0, infinite, 2}, {1, 2, 3})) << mode;
    EXPECT_FALSE(Apply(&delta, 0, {0, 1, 2}, {1, static_cast<double>(nan), 3})) << mode;
    EXPECT_FALSE(Apply(&delta, 0, {0, 1, 2}, {static_cast<double>(infinite), 2, 3})) << mode;
    EXPECT_EQ(delta.Save(), before) << mode;
  }
}

// Costs of an episode in the last third of a run.
struct LateCost {
  double mean = 0, worst = 0;  // worst: the largest mean of 100 episodes in a row
};

// All lanes end their episodes together; the newest `delay` episodes are not applied yet.
LateCost Play(Delta* delta, DeltaPlant* plant, int episodes, int lanes = 1, size_t delay = 0) {
  std::deque<std::pair<std::vector<float>, std::vector<double>>> waiting;  // costs, cvar
  const int from = episodes * 2 / 3;
  double held = delta->value(0), hundred = 0;
  LateCost late;
  for (int episode = 1; episode <= episodes; ++episode) {
    const double cost = plant->Play(held);
    waiting.emplace_back(plant->costs(), plant->cvar());
    if (episode % lanes == 0) {
      for (; waiting.size() > delay; waiting.pop_front()) {
        EXPECT_TRUE(Apply(delta, 0, waiting.front().first, waiting.front().second));
      }
      held = delta->value(0);
    }
    if (episode <= from) continue;
    late.mean += cost / (episodes - from);
    hundred += cost / 100;
    if ((episode - from) % 100 == 0) late.worst = std::max(late.worst, std::exchange(hundred, 0));
  }
  return late;
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

// Far above its place, or with a large integral far below it.
Delta ControlledFrom(bool open, int horizon, double budget) {
  AlgorithmConfig config = ConfigOf({"controlled"}, budget, horizon);
  v1::Hyper& hyper = config.members[0].hyper;
  hyper.set_init_delta(open ? RawOf(10 * DiscountedBudget(std::max(budget, 1.0), horizon, 0.99)) : 0);
  Delta delta(config);
  if (!open) delta.set_raw(0, 3);
  return delta;
}

TEST(ControlledDelta, BringsAPlantToNineTenthsOfItsBudget) {
  for (const int horizon : {100, 300, 1000}) {
    for (const double budget : {1.0, 40.0}) {
      for (const double ratio : {0.4, 1.6}) {
        for (const bool open : {true, false}) {
          Delta delta = ControlledFrom(open, horizon, budget);
          DeltaPlant plant = PlantOf(horizon, budget, ratio);
          EXPECT_NEAR(Play(&delta, &plant, 1500).mean / budget, 0.9, 0.05) << Named(horizon, budget, ratio);
        }
      }
    }
  }
}

TEST(ControlledDelta, WithABudgetOfNothingAPlantCostsLessThanTheUnit) {
  for (const int horizon : {100, 300, 1000}) {
    for (const bool open : {true, false}) {
      Delta delta = ControlledFrom(open, horizon, 0);
      DeltaPlant plant(horizon, 20, DiscountedBudget(1, horizon, 0.99), /*seed=*/1);
      EXPECT_LT(Play(&delta, &plant, 1500).mean, 1) << horizon;
    }
  }
}

TEST(ControlledDelta, StaysNearTheBudgetWithLateFeedbackOrManyLanesAndSwingsMoreWithALargerGain) {
  for (const int horizon : {100, 1000}) {
    for (const double ratio : {0.4, 1.6}) {
      const auto play = [&](double gain, int lanes, size_t delay) {
        AlgorithmConfig config = ConfigOf({"controlled"}, 40, horizon);  // starts at the converted budget
        config.members[0].hyper.set_delta_integral(gain);
        Delta delta(config);
        DeltaPlant plant = PlantOf(horizon, 40, ratio);
        return Play(&delta, &plant, 6000, lanes, delay);
      };
      const LateCost lanes = play(0.02, 100, 0), late = play(0.02, 1, 200);
      for (const LateCost& cost : {lanes, late}) {
        EXPECT_GT(cost.mean / 40, 0.55) << Named(horizon, 40, ratio);
        EXPECT_LT(cost.mean / 40, 0.95) << Named(horizon, 40, ratio);
        EXPECT_LT(cost.worst / 40, 1.6) << Named(horizon, 40, ratio);
      }
      EXPECT_GT(play(0.05, 100, 0).worst, lanes.worst) << Named(horizon, 40, ratio);
    }
  }
}

// In the plants that cost too much, most predictions are too large, so it ends above.
TEST(LearnedDelta, EndsAtTheConvertedBudgetOrAboveItWhateverEpisodesCost) {
  for (const int horizon : {100, 300, 1000}) {
    for (const double budget : {1.0, 40.0}) {
      const double converted = DiscountedBudget(budget, horizon, 0.99);
      for (const double ratio : {0.4, 1.6}) {
        Delta delta(ConfigOf({"learned"}, budget, horizon));
        delta.set_raw(0, RawOf(1.5 * converted));  // at most 1,500 x 0.05 away
        DeltaPlant plant = PlantOf(horizon, budget, ratio);
        const double cost = Play(&delta, &plant, 1500).mean;
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

// Predictions follow the cost, so a floor of predictions alone would rise with it and hold a bad policy open.
TEST(ControlledDelta, AFloorOfHighPredictionsDoesNotKeepItOpen) {
  Delta delta(ConfigOf({"controlled"}, 10, 100));
  for (int episode = 0; episode < 300; ++episode) ApplyHalf(&delta, 200, 50);
  EXPECT_LT(delta.value(0), 0.2);  // 50 (10 / (4 x 200))^2 = 0.0078; a hundredth of the converted budget is 0.063
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
  EXPECT_DOUBLE_EQ(delta.raw(0), 8) << "the first episode counts whatever it costs";
  EXPECT_DOUBLE_EQ(delta.value(0), 12);
  ASSERT_TRUE(Apply(&delta, 0, {0, -5, 0}, {3, 2, 4}));
  EXPECT_DOUBLE_EQ(*delta.cost(0), 10 - 10 / 1.9);
  EXPECT_DOUBLE_EQ(delta.raw(0), 8 + 0.05 * (4 - 8));
  ASSERT_TRUE(Apply(&delta, 0, {0, 20, 0}, {0, 100, 0}));
  EXPECT_DOUBLE_EQ(delta.raw(0), 7.8) << "it costs more than the budget and more than the mean";
  ASSERT_TRUE(Apply(&delta, 0, {0, 3}, {1, 6}));  // half an episode
  EXPECT_DOUBLE_EQ(delta.raw(0), 7.8 + 0.025 * (6 - 7.8)) << "more than the budget, less than the mean";
  EXPECT_DOUBLE_EQ(delta.value(0), 1.5 * delta.raw(0));
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
