// Acting rules atacom_fi and atacom_nfi: store the policy's sample and execute the analytic map's action.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/safety/known_rows.h"
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
using testing::Hockey;
using testing::MakeRule;
using testing::RuleActions;
using testing::RuleInputs;

constexpr int kObs = 16, kActions = 3, kBatch = 12;

Snapshot Sample(const std::string& rule, uint64_t seed) {
  Snapshot snapshot = testing::SafeMapSnapshot(kObs, kActions, 6, {64, 64}, seed);
  snapshot.acting_rule = rule;
  snapshot.scalars = {{"atacom_gain", 25}, {"slack_beta", 3}};
  return snapshot;
}

TEST(AnalyticRule, StoresThePolicysSampleAndExecutesTheMapsAction) {
  const auto constraints = Hockey().known_constraints;
  // Arm states over the whole range, some fast, so that constraints are near or violated.
  const RuleInputs in(kBatch, Hockey().spec);
  const std::vector<float> u = Act(MakeRule(Sample("gaussian_policy", 1), Hockey(), kBatch).get(), in).stored;
  for (const std::string name : {"atacom_fi", "atacom_nfi"}) {
    const std::vector<double> none(constraints->count(), 0.0);
    AnalyticMap map(constraints, name == "atacom_fi" ? constraints->viability_gains() : none,
                    ControlAffineDims{kObs, kActions, 6, 0});
    const auto rule = MakeRule(Sample(name, 1), Hockey(), kBatch);
    EXPECT_FALSE(rule->has_constraint());
    std::vector<double> intervention(kBatch);
    ActingDiagnostics diagnostics;
    diagnostics.intervention = intervention.data();
    const RuleActions acted = Act(rule.get(), in, diagnostics);
    EXPECT_EQ(acted.stored, u) << name;
    ASSERT_NE(rule->executed(), nullptr);
    double largest = 0;
    for (int r = 0; r < kBatch; ++r) {
      const std::vector<double> q(in.observations.begin() + r * kObs + 6, in.observations.begin() + r * kObs + 12);
      const std::vector<double> chosen(u.begin() + r * kActions, u.begin() + (r + 1) * kActions);
      double want[kActions], square = 0;
      const std::vector<double> observation(in.observations.begin() + r * kObs,
                                            in.observations.begin() + (r + 1) * kObs);
      double f[6], G[18];
      Hockey().dynamics->Evaluate(observation.data(), {nullptr, nullptr, nullptr, f, G});
      map.Set({q.data(), nullptr, f, G, nullptr}, {25, 3});
      map.Apply(chosen.data(), want);
      for (int i = 0; i < kActions; ++i) {
        EXPECT_EQ(rule->executed()[r * kActions + i], static_cast<float>(want[i])) << name << " row " << r;
        square += std::pow(static_cast<float>(want[i]) - chosen[i], 2);
      }
      EXPECT_NEAR(intervention[r], std::sqrt(square), 1e-12);
      largest = std::max(largest, intervention[r]);
    }
    EXPECT_GT(largest, 1) << name << ": not rescaled into the box";
  }
}

TEST(AnalyticRule, ARowGivesTheSameBitsInEveryBatch) {
  for (const char* name : {"atacom_fi", "atacom_nfi"}) {
    testing::ExpectTheSameBitsInEveryBatch(Sample(name, 5), Hockey(), RuleInputs(kBatch, Hockey().spec));
  }
}

TEST(AnalyticRule, LoadReplacesPolicyAndGainsOrNothing) {
  const auto rule = MakeRule(Sample("atacom_fi", 1), Hockey(), kBatch);
  const RuleInputs in(kBatch, Hockey().spec);
  const RuleActions before = Act(rule.get(), in);
  Snapshot next = Sample("atacom_fi", 2);
  next.scalars["atacom_gain"] = 10;
  Snapshot broken = next;
  broken.scalars.erase("slack_beta");
  EXPECT_THAT(std::string(rule->Load(broken).message()), HasSubstr("slack_beta"));
  broken = next;
  broken.arrays.front().shape = {2};
  EXPECT_FALSE(rule->Load(broken).ok());
  EXPECT_TRUE(Act(rule.get(), in) == before);
  ASSERT_THAT(rule->Load(next), IsOk());
  EXPECT_TRUE(Act(rule.get(), in) == Act(MakeRule(next, Hockey(), kBatch).get(), in));
}

class NineActions : public ControlAffine {
 public:
  ControlAffineDims dims() const override { return {kObs, 9, 6, 0}; }
  void Evaluate(const double*, const ControlAffineOut&) const override {}
};

TEST(AnalyticRule, RefusesTasksItCannotActIn) {
  const auto message = [](const TaskModel& model) {
    return std::string(MakeActingRule(Sample("atacom_fi", 1), model, 1).status().message());
  };
  EXPECT_THAT(message(MakeTaskModel("cartpole", v1::TaskOptions()).value()), HasSubstr("cartpole"));
  TaskModel other = Hockey();
  other.dynamics = std::make_shared<NineActions>();
  EXPECT_THAT(message(other), HasSubstr("9 actions, the safe map takes at most 8"));
}

TEST(AnalyticRule, DeclaresTheExecutedActionAsNotLearnedFrom) {
  for (const std::string name : {"atacom_fi", "atacom_nfi"}) {
    const auto columns = ActingRuleColumns(name, kActions);
    ASSERT_THAT(columns, IsOk());
    ASSERT_EQ(columns->size(), 1u);
    EXPECT_EQ(columns->front().name, "executed_action");
    EXPECT_EQ(columns->front().width, 3u);
    EXPECT_FALSE(columns->front().learning);
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
