// Acting rule normalised_gaussian: stores the Gaussian sample and its log-density, executes the sample scaled to the
// action's box.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "datacom/v1/task_options.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/acting_rules.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/snapshots.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using testing::Act;
using ::testing::HasSubstr;
using testing::MakeRule;
using testing::RuleActions;
using testing::RuleInputs;

constexpr int kObs = 22, kActions = 2, kBatch = 9;

// The action's box is not symmetric in its scale: speed and turn rate have different bounds.
TaskModel Navigation() { return MakeTaskModel("navigation", v1::TaskOptions()).value(); }

Snapshot Sample(uint64_t seed) {
  return testing::SnapshotForRule("normalised_gaussian", kObs, kActions, /*state=*/0, {24, 16}, seed);
}

RuleInputs Inputs() {
  RuleInputs inputs(kBatch, Navigation().spec);
  for (float& value : inputs.observations) value *= 2;  // some are beyond the limit of 5 deviations of 0.5
  return inputs;
}

// The mean of one row, in double.
std::vector<double> MeanOf(const Snapshot& snapshot, const float* observation) {
  std::vector<double> x(kObs);
  for (int i = 0; i < kObs; ++i) {
    x[i] = (static_cast<double>(observation[i]) - snapshot.Find("observation.mean")->values[i]) /
           snapshot.Find("observation.std")->values[i];
    x[i] = std::max(-5.0, std::min(5.0, x[i]));
  }
  for (int layer = 0; layer < 3; ++layer) {
    const std::string prefix = "actor.mean." + std::to_string(layer);
    const std::vector<float>& weight = snapshot.Find(prefix + ".weight")->values;
    const std::vector<float>& bias = snapshot.Find(prefix + ".bias")->values;
    std::vector<double> y(bias.begin(), bias.end());
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < y.size(); ++j) y[j] += x[i] * weight[i * y.size() + j];
    }
    if (layer < 2) {
      for (double& value : y) value = std::tanh(value);
    }
    x = y;
  }
  return x;
}

TEST(NormalisedGaussian, StoresTheSampleAndItsDensityAndExecutesItInTheBox) {
  const Snapshot snapshot = Sample(1);
  const TaskSpec spec = Navigation().spec;
  const RuleInputs inputs = Inputs();
  const auto rule = MakeRule(snapshot, Navigation(), kBatch);
  const RuleActions acted = Act(rule.get(), inputs);
  const float* const log_prob = rule->columns().at(1);
  for (int r = 0; r < kBatch; ++r) {
    const std::vector<double> mean = MeanOf(snapshot, &inputs.observations[r * kObs]);
    double expected = 0;
    for (int i = 0; i < kActions; ++i) {
      const int at = r * kActions + i;
      const double std = std::exp(static_cast<double>(snapshot.Find("actor.log_std")->values[i]));
      EXPECT_NEAR(acted.stored[at], mean[i] + std * inputs.noise[at], 2e-5);
      const double half = (spec.action_high[i] - spec.action_low[i]) / 2;
      const double centre = (spec.action_high[i] + spec.action_low[i]) / 2;
      EXPECT_NEAR(acted.executed[at], acted.stored[at] * half + centre, 1e-6);
      const double apart = (acted.stored[at] - mean[i]) / std;
      expected += -0.5 * apart * apart - std::log(std * std::sqrt(2 * M_PI));
    }
    EXPECT_NEAR(log_prob[r], expected, 1e-3);
  }
}

TEST(NormalisedGaussian, ARowGivesTheSameBitsInEveryBatch) {
  testing::ExpectTheSameBitsInEveryBatch(Sample(2), Navigation(), Inputs());
}

TEST(NormalisedGaussian, LoadReplacesEverythingOrNothing) {
  const RuleInputs inputs = Inputs();
  const auto rule = MakeRule(Sample(3), Navigation(), kBatch);
  const RuleActions before = Act(rule.get(), inputs);
  Snapshot wrong = Sample(4);
  for (NamedArray& array : wrong.arrays) {
    if (array.name == "observation.std") array.values[3] = 0;
  }
  const absl::Status refused = rule->Load(wrong);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("array observation.std holds 0, must be finite and above 0"));
  EXPECT_TRUE(Act(rule.get(), inputs) == before);
  ASSERT_THAT(rule->Load(Sample(4)), IsOk());
  EXPECT_TRUE(Act(rule.get(), inputs) == Act(MakeRule(Sample(4), Navigation(), kBatch).get(), inputs));
}

TEST(NormalisedGaussian, NamesWhatASnapshotLacks) {
  for (const std::string name : {"actor.log_std", "observation.mean", "observation.std", "actor.mean.1.weight"}) {
    Snapshot snapshot = Sample(5);
    for (size_t i = 0; i < snapshot.arrays.size(); ++i) {
      if (snapshot.arrays[i].name == name) snapshot.arrays.erase(snapshot.arrays.begin() + static_cast<long>(i));
    }
    const absl::Status refused = MakeActingRule(snapshot, Navigation(), 1).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << name;
  }
  Snapshot snapshot = Sample(5);
  snapshot.scalars.clear();
  EXPECT_THAT(std::string(MakeActingRule(snapshot, Navigation(), 1).status().message()),
              HasSubstr("observation_limit"));
}

TEST(NormalisedGaussian, RefusesNumbersThatItCannotActWith) {
  const auto refusal = [](const Snapshot& snapshot) {
    return std::string(MakeActingRule(snapshot, Navigation(), 1).status().message());
  };
  for (const std::string name : {"actor.log_std", "observation.mean", "observation.std"}) {
    for (const float value : {NAN, INFINITY}) {
      Snapshot snapshot = Sample(5);
      for (NamedArray& array : snapshot.arrays) {
        if (array.name == name) array.values[1] = value;
      }
      EXPECT_THAT(refusal(snapshot), HasSubstr("array " + name + " holds ")) << value;
    }
    Snapshot snapshot = Sample(5);
    for (NamedArray& array : snapshot.arrays) {
      if (array.name == name) array.shape = {1, array.shape[0]};
    }
    EXPECT_THAT(refusal(snapshot), HasSubstr("array " + name)) << "it has another shape";
  }
  for (const double limit : {0.0, -5.0, 1e-60}) {
    Snapshot snapshot = Sample(5);
    snapshot.scalars["observation_limit"] = limit;
    EXPECT_THAT(refusal(snapshot), HasSubstr("observation_limit")) << limit;
  }
}

TEST(NormalisedGaussian, DeclaresItsColumns) {
  const auto columns = ActingRuleColumns("normalised_gaussian", kActions).value();
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(columns[0].name, "executed_action");
  EXPECT_FALSE(columns[0].learning);
  EXPECT_EQ(columns[1].name, "log_prob");
  EXPECT_TRUE(columns[1].learning);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
