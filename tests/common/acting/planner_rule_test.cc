// Acting rule planner: chooses plans by imagined return within an imagined cost, warm-started from the plan before.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/acting/planner_parts.h"
#include "common/base/random.h"
#include "datacom/v1/task_options.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/acting_rules.h"
#include "tests/testing/golden.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/snapshots.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;
using testing::Hockey;

constexpr int kObs = 16, kActions = 3, kInputs = kObs + kActions;
constexpr int kVelocity = 9;  // observation of the first joint's velocity

std::unique_ptr<ActingRule> MakeRule(const Snapshot& snapshot) { return testing::MakeRule(snapshot, Hockey(), 16); }

// An observation of the arm at rest at its start: all constraints hold.
std::vector<float> AtRest() {
  std::vector<float> s(kObs, 0.0f);
  s[0] = 1.0f;
  s[6] = -1.15570723f, s[7] = 1.30024401f, s[8] = 1.44280414f;
  s[12] = 0.65f - s[0];
  return s;
}

// Linear dynamics with little noise: reward = <gain, a>, the first joint's next velocity = push a_0.
Snapshot Linear(const std::vector<float>& gain, float push) {
  Snapshot snapshot = testing::PlannerSnapshot(kObs, kActions, {8}, 3);
  const auto drop = [](const NamedArray& array) {
    return array.name.rfind("dynamics.", 0) == 0 || array.name.rfind("critic.", 0) == 0;
  };
  snapshot.arrays.erase(std::remove_if(snapshot.arrays.begin(), snapshot.arrays.end(), drop), snapshot.arrays.end());
  const uint32_t width = 2 * (kObs + 1);
  for (const char* net : {"dynamics.0", "dynamics.1"}) {
    NamedArray weight{std::string(net) + ".0.weight", {kInputs, width}, std::vector<float>(kInputs * width)};
    NamedArray bias{std::string(net) + ".0.bias", {width}, std::vector<float>(width)};
    for (int i = 0; i < kActions; ++i) weight.values[(kObs + i) * width] = gain[i];
    weight.values[kVelocity * width + 1 + kVelocity] = -1;
    weight.values[kObs * width + 1 + kVelocity] = push;
    std::fill(bias.values.begin() + kObs + 1, bias.values.end(), -40.0f);
    snapshot.arrays.push_back(weight);
    snapshot.arrays.push_back(bias);
  }
  snapshot.arrays.push_back({"critic.0.0.weight", {kInputs, 1}, std::vector<float>(kInputs)});
  snapshot.arrays.push_back({"critic.0.0.bias", {1}, std::vector<float>(1)});
  snapshot.arrays.push_back({"dynamics.input_mean", {kInputs}, std::vector<float>(kInputs, 0.0f)});
  snapshot.arrays.push_back({"dynamics.input_std", {kInputs}, std::vector<float>(kInputs, 1.0f)});
  snapshot.scalars["plan_samples"] = 100;
  snapshot.scalars["plan_iterations"] = 5;
  return snapshot;
}

// Decides 30 times in the same state, from a plan that repeats `start`. Returns the mean of the last 10 actions.
std::vector<double> Decide(const Snapshot& snapshot, float start = 0) {
  const auto rule = MakeRule(snapshot);
  const std::vector<float> observation = AtRest();
  std::vector<float> memory(rule->memory_dim(), start);
  std::vector<double> mean(kActions);
  for (uint64_t i = 0; i < 30; ++i) {
    float noise[2], action[kActions];
    FillNormal(i, noise, 2);
    rule->Act(1, {observation.data(), noise, nullptr, memory.data()}, action, {});
    for (int j = 0; j < kActions && i >= 20; ++j) mean[j] += action[j] / 10;
  }
  return mean;
}

TEST(PlannerRule, FindsTheActionsThatTheModelRewards) {
  const std::vector<double> mean = Decide(Linear({0.5f, -0.5f, 0}, 0));
  EXPECT_GT(mean[0], 0.8);
  EXPECT_LT(mean[1], -0.8);
}

TEST(PlannerRule, KeepsThePlanWithinTheKnownCost) {
  // Reward wants a_0 = 1, but the velocity is 2 a_0, and its limit in the cost is 1.49 rad/s: a_0 = 0.746.
  Snapshot snapshot = Linear({1, 0, 0}, 2);
  snapshot.scalars["cost_limit"] = 1e9;
  EXPECT_GT(Decide(snapshot)[0], 0.9);
  snapshot.scalars["cost_limit"] = 0;
  EXPECT_LT(Decide(snapshot)[0], 0.78);
  EXPECT_GT(Decide(snapshot)[0], 0.3);
  // If no plan is feasible, the cheapest one wins, and reward counts nothing.
  snapshot.scalars["cost_limit"] = -1e9;
  EXPECT_LT(Decide(snapshot, 0.95f)[0], 0.78);
}

TEST(PlannerRule, StartsFromThePlanBeforeShiftedByOneStep) {
  Snapshot snapshot = Linear({0, 0, 0}, 0);
  snapshot.scalars["plan_samples"] = 1000;
  snapshot.scalars["plan_particles"] = 100;
  snapshot.scalars["plan_iterations"] = 1;
  const auto rule = MakeRule(snapshot);
  ASSERT_EQ(rule->memory_dim(), 21);
  std::vector<float> memory(21);
  for (int i = 0; i < 21; ++i) memory[i] = (i / 3 + i % 3) % 2 == 0 ? 0.4f : -0.4f;
  std::vector<float> shifted(memory.begin() + 3, memory.end());
  shifted.insert(shifted.end(), memory.end() - 3, memory.end());
  const std::vector<float> start = AtRest(), noise{0.3f, -0.4f};
  float action[kActions];
  rule->Act(1, {start.data(), noise.data(), nullptr, memory.data()}, action, {});
  // All plans are equally good up to the model's noise: the mean of 1000 samples of deviation 0.27 and of 50 copies of
  // the actor's rollout.
  for (int i = 0; i < 21; ++i) EXPECT_NEAR(memory[i], shifted[i], 0.25) << i;
  for (int i = 0; i < kActions; ++i) EXPECT_EQ(action[i], memory[i]);
  const float* const column = rule->columns().at(0);
  EXPECT_EQ(std::vector<float>(column, column + 21), memory);
}

TEST(PlannerRule, ActsAtRandomUntilTheSnapshotSaysOtherwise) {
  Snapshot snapshot = testing::PlannerSnapshot(kObs, kActions, {16, 16}, 1);
  snapshot.scalars["random_actions"] = 1;
  TaskModel model = Hockey();
  model.spec.action_low = {-1, 0, -3};
  model.spec.action_high = {1, 1, 5};
  const auto rule = MakeActingRule(snapshot, model, 1).value();
  const std::vector<float> observation = AtRest();
  std::vector<float> memory(rule->memory_dim());
  std::vector<std::vector<double>> drawn(kActions);
  for (uint64_t i = 0; i < 4000; ++i) {
    float noise[2], action[kActions];
    FillNormal(i, noise, 2);
    rule->Act(1, {observation.data(), noise, nullptr, memory.data()}, action, {});
    for (int j = 0; j < kActions; ++j) drawn[j].push_back(action[j]);
  }
  for (int j = 0; j < kActions; ++j) {
    std::sort(drawn[j].begin(), drawn[j].end());
    const double low = model.spec.action_low[j], range = model.spec.action_high[j] - low;
    for (const double quantile : {0.0, 0.25, 0.5, 0.75, 0.99975}) {
      EXPECT_NEAR(drawn[j][static_cast<size_t>(quantile * 4000)], low + quantile * range, 0.03 * range);
    }
  }
  EXPECT_EQ(memory, std::vector<float>(memory.size(), 0.0f));
}

TEST(PlannerRule, ARowGivesTheSameBitsInEveryBatch) {
  const Snapshot snapshot = testing::PlannerSnapshot(kObs, kActions, {16, 16}, 5);
  const auto whole = MakeRule(snapshot), single = MakeRule(snapshot);
  constexpr int kBatch = 4;
  const int memory_dim = whole->memory_dim();
  std::vector<float> observations(kBatch * kObs), noise(kBatch * 2), actions(kBatch * kActions);
  std::vector<float> memory(kBatch * memory_dim), own = memory;
  FillNormal(1, observations.data(), kBatch * kObs);
  FillNormal(2, noise.data(), kBatch * 2);
  for (int decision = 0; decision < 3; ++decision) {
    whole->Act(kBatch, {observations.data(), noise.data(), nullptr, memory.data()}, actions.data(), {});
    for (int r = 0; r < kBatch; ++r) {
      float action[kActions];
      single->Act(1, {&observations[r * kObs], &noise[r * 2], nullptr, &own[r * memory_dim]}, action, {});
      for (int i = 0; i < kActions; ++i) EXPECT_EQ(action[i], actions[r * kActions + i]);
    }
    EXPECT_EQ(own, memory);
  }
}

TEST(PlannerRule, LoadReplacesNetsAndScalarsOrNothing) {
  const auto rule = MakeRule(testing::PlannerSnapshot(kObs, kActions, {16, 16}, 1));
  const std::vector<float> observation = AtRest(), noise{0.1f, 0.2f};
  const auto act = [&](ActingRule* r) {
    std::vector<float> action(kActions);
    r->Act(1, {observation.data(), noise.data()}, action.data(), {});
    return action;
  };
  const auto before = act(rule.get());
  const Snapshot next = testing::PlannerSnapshot(kObs, kActions, {16, 16}, 2);
  Snapshot broken = next;
  broken.scalars["plan_samples"] = 30;
  EXPECT_THAT(std::string(rule->Load(broken).message()),
              HasSubstr("plan_samples = 30, but the run's first snapshot has 20"));
  broken.scalars["plan_samples"] = 2.5;
  EXPECT_THAT(std::string(rule->Load(broken).message()), HasSubstr("plan_samples = 2.5"));
  broken = next;
  broken.arrays.back().values[3] = 0;
  EXPECT_THAT(std::string(rule->Load(broken).message()), HasSubstr("dynamics.input_std holds 0"));
  broken = next;
  broken.arrays.pop_back();
  EXPECT_THAT(std::string(rule->Load(broken).message()), HasSubstr("no array dynamics.input_std"));
  broken = next;
  broken.acting_rule = "gaussian_policy";
  EXPECT_THAT(std::string(rule->Load(broken).message()), HasSubstr("gaussian_policy"));
  EXPECT_EQ(act(rule.get()), before);
  ASSERT_THAT(rule->Load(next), IsOk());
  EXPECT_EQ(act(rule.get()), act(MakeRule(next).get()));
  const TaskModel navigation = MakeTaskModel("navigation", v1::TaskOptions()).value();
  EXPECT_THAT(std::string(MakeActingRule(testing::PlannerSnapshot(22, 2, {16}, 1), navigation, 1).status().message()),
              HasSubstr("navigation has no known cost"));
}

// Swish nets layer by layer in double; the outputs are mean and log-variance of what Step draws.
TEST(DynamicsEnsemble, DrawsFromTheSoftlyBoundedGaussianOfOneMember) {
  constexpr int kState = 2, kAction = 1, kIn = 3, kOut = 6;
  Snapshot snapshot;
  for (const char* net : {"dynamics.0", "dynamics.1"}) testing::AddNet(net, {kIn, 9, 7, kOut}, 4, &snapshot);
  for (NamedArray& array : snapshot.arrays) {
    if (array.name == "dynamics.1.2.bias") array.values = {0.2f, 0.5f, 90.0f, -2.0f, 3.0f, -30.0f};
  }
  snapshot.arrays.push_back({"dynamics.input_mean", {kIn}, {0.5f, -1.0f, 0.1f}});
  snapshot.arrays.push_back({"dynamics.input_std", {kIn}, {2.0f, 0.5f, 1.5f}});
  SnapshotForm form;
  DynamicsEnsemble::Declare(kState, kAction, snapshot, &form);
  DynamicsEnsemble ensemble(snapshot, form, kState, kAction, 4);
  ensemble.Set(snapshot);
  EXPECT_EQ(ensemble.members(), 2);
  const std::vector<float> before{0.3f, -0.7f, 1.1f, 30.0f}, actions{0.9f, -0.4f};
  const std::vector<float> normals{0.5f, -1.0f, 2.0f, 1.0f, 0.1f, -0.2f};
  std::vector<float> states = before, rewards(2);
  ensemble.Step(1, 2, actions.data(), normals.data(), states.data(), rewards.data());
  for (int r = 0; r < 2; ++r) {
    std::vector<double> x{(before[2 * r] - 0.5) / 2, (before[2 * r + 1] + 1) / 0.5, (actions[r] - 0.1) / 1.5};
    for (int layer = 0; layer < 3; ++layer) {
      const std::string prefix = "dynamics.1." + std::to_string(layer);
      const std::vector<float>& weight = snapshot.Find(prefix + ".weight")->values;
      std::vector<double> y(snapshot.Find(prefix + ".bias")->values.begin(),
                            snapshot.Find(prefix + ".bias")->values.end());
      for (size_t i = 0; i < x.size(); ++i) {
        for (size_t j = 0; j < y.size(); ++j) y[j] += x[i] * weight[i * y.size() + j];
      }
      if (layer < 2) {
        for (double& v : y) v /= 1 + std::exp(-v);
      }
      x = y;
    }
    const auto drawn = [&](int i) {
      double log_variance = 0.5 - std::log1p(std::exp(0.5 - x[3 + i]));
      log_variance = -10 + std::log1p(std::exp(log_variance + 10));
      return x[i] + std::exp(log_variance / 2) * normals[3 * r + i];
    };
    EXPECT_NEAR(rewards[r], drawn(0), 1e-5);
    EXPECT_NEAR(states[2 * r], before[2 * r] + drawn(1), 1e-5);
    EXPECT_NEAR(states[2 * r + 1], std::min(before[2 * r + 1] + drawn(2), 100.0), 1e-4);
  }
  EXPECT_EQ(states[3], 100) << "clamped";
}

TEST(PlanRefit, CountsAFeasibleCandidateOnceAndAnInfeasibleOneNever) {
  const PlanSize size{1, 3, 1};
  const std::vector<float> actions{-1.0f, 0.5f, 1.0f}, rewards{9.0f, 0.002f, 0.002f}, none(3);
  PlanScores scores(size);
  scores.Begin();
  const std::vector<double> costs{0.1, -0.2, 0.0005};
  scores.Add(0, rewards.data(), costs.data());
  scores.AddValues(none.data());
  scores.Finish(1);
  EXPECT_NEAR(scores.returns()[1], 2, 1e-6) << "1000 steps";
  EXPECT_NEAR(scores.costs()[0], 100, 1e-9);
  double weights[3], mean = 0, variance = 0;
  EXPECT_EQ(RefitPlan(size, {1.0, 2}, actions.data(), scores, weights, &mean, &variance), 2);
  EXPECT_NEAR(mean, 0.75, 1e-6);
  EXPECT_NEAR(variance, 0.0625, 1e-6);
  EXPECT_EQ(RefitPlan(size, {1.0, 3}, actions.data(), scores, weights, &mean, &variance), 2) << "too few";
  EXPECT_NEAR(mean, 0.5, 1e-6) << "the cheapest";
  EXPECT_EQ(RefitPlan(size, {1.0, 2, true}, actions.data(), scores, weights, &mean, &variance), 2);
  EXPECT_NEAR(mean, -1, 1e-6) << "as released, the infeasible first candidate counts";
}

TEST(Golden, i_safe_loop_cases) {
  DATACOM_GOLDEN_FILES(paths, "i_safe_loop_cases");
  for (const std::string& path : paths) {
    const nlohmann::json cases = testing::ReadGoldenJson(path).at("safe_arc");
    ASSERT_FALSE(cases.empty());
    for (const nlohmann::json& c : cases) {
      const nlohmann::json& dims = c.at("dims");
      const PlanSize size{dims.at("H"), dims.at("actions"), dims.at("act_dim")};
      const int models = dims.at("models"), particles = dims.at("particles"), n = size.action_dim;
      const auto row = [&](const char* name, int step, int model, int particle) {
        const std::vector<double> all = c.at(name).at(step).at(model);
        return std::vector<double>(all.begin() + particle * size.candidates,
                                   all.begin() + (particle + 1) * size.candidates);
      };
      PlanScores scores(size);
      scores.Begin();
      for (int model = 0; model < models; ++model) {
        for (int particle = 0; particle < particles; ++particle) {
          for (int step = 0; step < size.horizon; ++step) {
            const std::vector<double> rewards = row("rewards", step, model, particle);
            const std::vector<float> narrow(rewards.begin(), rewards.end());
            scores.Add(step, narrow.data(), row("costs", step, model, particle).data());
          }
          const std::vector<double> values = row("values", size.horizon - 1, model, particle);
          const std::vector<float> narrow(values.begin(), values.end());
          scores.AddValues(narrow.data());
        }
      }
      scores.Finish(models * particles);
      std::vector<float> actions;
      for (const nlohmann::json& step : c.at("actions")) {
        for (const nlohmann::json& action : step) {
          for (const nlohmann::json& value : action) actions.push_back(value);
        }
      }
      std::vector<double> weights(size.candidates), mean(size.horizon * n), variance(size.horizon * n);
      const PlanWeighing weighing{c.at("cost_limit"), c.at("num_elites"), /*repeat_first=*/true};
      const int feasible =
          RefitPlan(size, weighing, actions.data(), scores, weights.data(), mean.data(), variance.data());
      EXPECT_EQ(feasible, c.at("feasible_num")) << "case " << c.at("id");
      for (int i = 0; i < size.horizon * n; ++i) {
        EXPECT_NEAR(mean[i], c.at("new_mean")[i / n][i % n].get<double>(), 2e-5) << "case " << c.at("id");
        EXPECT_NEAR(variance[i], c.at("new_var")[i / n][i % n].get<double>(), 2e-5) << "case " << c.at("id");
      }
    }
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
