// Acting rule safe_layer: stores the noisy deterministic action and executes its projection by the linear cost model.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/safety/cost_projection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/acting_rules.h"
#include "tests/testing/golden.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/snapshots.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using testing::Act;
using ::testing::HasSubstr;
using testing::Hockey;
using testing::MakeRule;
using testing::RuleActions;
using testing::RuleInputs;

constexpr int kObs = 16, kActions = 3, kBatch = 12;

Snapshot Sample(uint64_t seed) {
  return testing::SnapshotForRule("safe_layer", kObs, kActions, /*state=*/0, {64, 64}, seed);
}

// One row of a net, layer by layer in double.
std::vector<double> Net(const Snapshot& snapshot, const std::string& name, const float* in) {
  std::vector<double> x(in, in + kObs);
  for (int layer = 0; layer < 3; ++layer) {
    const std::string prefix = name + "." + std::to_string(layer);
    const std::vector<float>& weight = snapshot.Find(prefix + ".weight")->values;
    const std::vector<float>& bias = snapshot.Find(prefix + ".bias")->values;
    std::vector<double> y(bias.begin(), bias.end());
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < y.size(); ++j) y[j] += x[i] * weight[i * y.size() + j];
    }
    if (layer < 2) {
      for (double& value : y) value = std::max(value, 0.0);
    }
    x = y;
  }
  return x;
}

TEST(SafeLayerRule, StoresTheNoisyActionAndExecutesTheNearestPredictedSafeOne) {
  TaskModel model = Hockey();
  model.spec.action_low = {-1, -0.5, -2};
  model.spec.action_high = {1, 1.5, 2};
  const Snapshot snapshot = Sample(1);
  const auto rule = MakeRule(snapshot, model, kBatch);
  EXPECT_FALSE(rule->has_constraint());
  const RuleInputs in(kBatch, model.spec);
  std::vector<double> intervention(kBatch);
  ActingDiagnostics diagnostics;
  diagnostics.intervention = intervention.data();
  const RuleActions acted = Act(rule.get(), in, diagnostics);
  const std::vector<const float*> columns = rule->columns();
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(columns[0], rule->executed());
  EXPECT_EQ(std::vector<float>(columns[1], columns[1] + kBatch), in.costs);
  int clipped = 0, projected = 0, left = 0;
  for (int r = 0; r < kBatch; ++r) {
    const std::vector<double> raw = Net(snapshot, "actor", &in.observations[r * kObs]);
    const std::vector<double> g = Net(snapshot, "safety_model", &in.observations[r * kObs]);
    const float* a = &acted.stored[r * kActions];
    const float* executed = &acted.executed[r * kActions];
    double predicted = in.costs[r], after = in.costs[r], norm = 1e-8, square = 0, along = 0;
    for (int i = 0; i < kActions; ++i) {
      const double low = model.spec.action_low[i], high = model.spec.action_high[i];
      const double noisy = std::tanh(raw[i]) * (high - low) / 2 + (high + low) / 2 + 0.5 * in.noise[r * kActions + i];
      EXPECT_NEAR(a[i], std::min(std::max(noisy, low), high), 1e-5) << "row " << r;
      clipped += noisy < low || noisy > high;
      predicted += g[i] * a[i], after += g[i] * executed[i], norm += g[i] * g[i];
      square += std::pow(static_cast<double>(executed[i]) - a[i], 2), along += g[i] * (executed[i] - a[i]);
    }
    EXPECT_NEAR(intervention[r], std::sqrt(square), 1e-9);
    if (predicted < 1e-6) {
      ++left;
      EXPECT_EQ(square, 0) << "row " << r;
    } else {
      ++projected;
      EXPECT_NEAR(after, 1e-6, 1e-4 * (1 + std::abs(predicted))) << "on the boundary";
      EXPECT_NEAR(along * along, norm * square, 1e-4 * norm * square)
          << "moves along the gradient, so it is the nearest";
    }
  }
  EXPECT_GT(clipped, 0);
  EXPECT_GT(projected, 0);
  EXPECT_GT(left, 0);
}

TEST(Golden, h_multiplier_and_loss_cases_projection) {
  DATACOM_GOLDEN_FILES(paths, "h_multiplier_and_loss_cases");
  for (const std::string& path : paths) {
    const nlohmann::json cases = testing::ReadGoldenJson(path).at("safe_layer_projection");
    ASSERT_FALSE(cases.empty());
    for (const nlohmann::json& c : cases) {
      const auto numbers = [&c](const char* name) { return c.at(name).get<std::vector<double>>(); };
      const std::vector<double> g = numbers("g"), action = numbers("action"), golden = numbers("out");
      std::vector<double> out(action.size());
      ProjectToCostThreshold(static_cast<int>(g.size()), g.data(), c.at("current_cost"), c.at("delta"), action.data(),
                             out.data());
      for (size_t i = 0; i < out.size(); ++i) {
        EXPECT_NEAR(out[i], golden[i], 2e-6 * (1 + std::abs(golden[i]))) << path << " case " << c.at("id");
      }
    }
  }
}

TEST(SafeLayerRule, ARowGivesTheSameBitsInEveryBatch) {
  testing::ExpectTheSameBitsInEveryBatch(Sample(5), Hockey(), RuleInputs(kBatch, Hockey().spec));
}

TEST(SafeLayerRule, LoadReplacesNetsAndScalarsOrNothing) {
  const auto rule = MakeRule(Sample(1), Hockey(), kBatch);
  const RuleInputs in(kBatch, Hockey().spec);
  const RuleActions before = Act(rule.get(), in);
  Snapshot next = Sample(2);
  next.scalars["projection_threshold"] = -0.5;
  Snapshot broken = next;
  broken.scalars.erase("exploration_noise");
  EXPECT_THAT(std::string(rule->Load(broken).message()), HasSubstr("exploration_noise"));
  broken = next;
  broken.arrays.back().shape = {2};
  EXPECT_THAT(std::string(rule->Load(broken).message()), HasSubstr("safety_model.2.bias"));
  broken = next;
  broken.acting_rule = "gaussian_policy";
  EXPECT_THAT(std::string(rule->Load(broken).message()), HasSubstr("gaussian_policy"));
  EXPECT_TRUE(Act(rule.get(), in) == before);
  ASSERT_THAT(rule->Load(next), IsOk());
  EXPECT_TRUE(Act(rule.get(), in) == Act(MakeRule(next, Hockey(), kBatch).get(), in));
}

TEST(SafeLayerRule, DeclaresTheExecutedActionAndThePreviousCost) {
  const auto columns = ActingRuleColumns("safe_layer", kActions).value();
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(columns[0].name, "executed_action");
  EXPECT_FALSE(columns[0].learning);
  EXPECT_EQ(columns[1].name, "prev_cost");
  EXPECT_TRUE(columns[1].learning);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
