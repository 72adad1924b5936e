// What the rules do without their shields, and how far shields move actions.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/acting/acting_rule.h"
#include "common/safety/known_rows.h"
#include "common/safety/safe_map.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/acting_rules.h"
#include "tests/testing/snapshots.h"

namespace datacom {
namespace {

using testing::Act;
using ::testing::Each;
using ::testing::Gt;
using testing::Hockey;
using testing::MakeRule;
using testing::RuleActions;
using testing::RuleInputs;

constexpr int kBatch = 16;

Snapshot Joined(const std::vector<std::string>& rows) {
  Snapshot snapshot = testing::SafeMapSnapshot(16, 3, 6, {32, 32}, /*seed=*/6);
  snapshot.scalars["delta"] = 0;  // no state is feasible, so that the row acts everywhere
  for (const std::string& row : rows) snapshot.scalars["known_constraint." + row] = 1;
  return snapshot;
}

// The samples of the policy, which nothing filters.
std::vector<float> Samples(Snapshot snapshot, const RuleInputs& in) {
  snapshot.acting_rule = "gaussian_policy";
  return Act(MakeRule(snapshot, Hockey(), kBatch).get(), in).stored;
}

double Distance(const std::vector<float>& a, const std::vector<float>& b, int row) {
  double square = 0;
  for (int i = 3 * row; i < 3 * row + 3; ++i) square += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(square);
}

struct WithAndWithout {
  WithAndWithout(const Snapshot& snapshot, const RuleInputs& in) : changes(kBatch), changes_without(kBatch) {
    const auto rule = MakeRule(snapshot, Hockey(), kBatch);
    EXPECT_TRUE(rule->has_shield());
    ActingDiagnostics diagnostics;
    diagnostics.shield_change = changes.data();
    with = Act(rule.get(), in, diagnostics);
    rule->UseShield(false);
    diagnostics.shield_change = changes_without.data();
    without = Act(rule.get(), in, diagnostics);
    EXPECT_EQ(Act(rule.get(), in), without) << "also when nobody asks for the change";
  }
  RuleActions with, without;
  std::vector<double> changes, changes_without;
};

TEST(Shield, OfASafeMapIsTheLearnedRowAndWithoutItTheSampleIsOnlyLimited) {
  const RuleInputs in(kBatch, Hockey().spec);
  const WithAndWithout both(Joined({}), in);
  std::vector<float> limited = Samples(Joined({}), in);
  for (float& number : limited) number = std::clamp(number, -1.0f, 1.0f);
  EXPECT_EQ(both.without.stored, limited);
  EXPECT_THAT(both.changes, Each(Gt(1e-4)));
  for (int r = 0; r < kBatch; ++r) EXPECT_NEAR(both.changes[r], Distance(both.with.stored, limited, r), 1e-12);
  EXPECT_EQ(both.changes_without, both.changes);
}

TEST(Shield, OfASafeMapLeavesTheKnownRows) {
  const TaskModel model = Hockey();
  const std::vector<std::string> names = {"mallet_x_lower", "velocity_1_upper", "joint_3_upper"};
  const RuleInputs in(kBatch, model.spec);
  const WithAndWithout both(Joined(names), in);
  const std::vector<float> u = Samples(Joined(names), in);
  KnownRows known(model.known_constraints, SelectKnownRows(model, names).value(), model.dynamics->dims());
  for (int r = 0; r < kBatch; ++r) {
    const std::vector<double> observation(in.observations.begin() + r * 16, in.observations.begin() + (r + 1) * 16);
    std::vector<double> q(6), f(6), G(18), records(3 * 5);
    model.dynamics->Evaluate(observation.data(), {q.data(), nullptr, nullptr, f.data(), G.data()});
    known.Evaluate({q.data(), nullptr, f.data(), G.data(), nullptr}, records.data());
    std::vector<double> k(3), drift(3), J_G(9);
    for (int row = 0; row < 3; ++row) {  // a record: k, drift, J_G
      k[row] = records[row * 5];
      drift[row] = records[row * 5 + 1];
      std::copy_n(&records[row * 5 + 2], 3, &J_G[row * 3]);
    }
    SafeMap map({3, 3, 0, 0});
    map.Set(SafeMapReduced{k.data(), J_G.data(), drift.data()}, {60, 3});
    const double tangent[3] = {u[3 * r], u[3 * r + 1], u[3 * r + 2]};
    double want[3];
    map.Apply(tangent, want);
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(both.without.stored[3 * r + i], want[i], 1e-6) << "row " << r;
    EXPECT_NEAR(both.changes[r], Distance(both.with.stored, both.without.stored, r), 1e-12);
  }
  EXPECT_GT(*std::max_element(both.changes.begin(), both.changes.end()), 1e-4);
}

TEST(Shield, OfARuleThatFiltersAfterThePolicyIsItsFilter) {
  for (const auto& [rule, state] : {std::pair<std::string, int>{"cbf_qp", 6}, {"safe_layer", 0}}) {
    const RuleInputs in(kBatch, Hockey().spec);
    const WithAndWithout both(testing::SnapshotForRule(rule, 16, 3, state, {32, 32}, /*seed=*/2), in);
    EXPECT_EQ(both.without.stored, both.with.stored) << rule;
    EXPECT_EQ(both.without.executed, both.without.stored) << rule;
    EXPECT_NE(both.with.executed, both.with.stored) << rule;
    for (int r = 0; r < kBatch; ++r) {
      EXPECT_NEAR(both.changes[r], Distance(both.with.executed, both.with.stored, r), 1e-12) << rule;
    }
    EXPECT_EQ(both.changes_without, both.changes) << rule;
  }
}

TEST(Shield, IsAbsentWhereNothingOfTheFilterIsLearned) {
  Snapshot plain = Joined({});
  plain.acting_rule = "gaussian_policy";
  EXPECT_FALSE(MakeRule(plain, Hockey(), 1)->has_shield());
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
