// Acting rule cbf_qp: stores the policy's sample and executes the action filtered by the barrier.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/safety/barrier_qp.h"
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
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Hockey;
using testing::MakeRule;
using testing::RuleActions;
using testing::RuleInputs;

constexpr int kObs = 16, kActions = 3, kState = 6, kBatch = 24;

Snapshot Sample(uint64_t seed) { return testing::SnapshotForRule("cbf_qp", kObs, kActions, kState, {64, 64}, seed); }

// The barrier and its gradient in float64, layer by layer: y = W^T x + b, rectified in hidden layers.
double BarrierAt(const Snapshot& snapshot, const std::vector<double>& q, std::vector<double>* slope) {
  std::vector<double> x = q;
  std::vector<std::vector<double>> jacobian(q.size(), std::vector<double>(q.size()));  // dx/dq, [x, q]
  for (size_t d = 0; d < q.size(); ++d) jacobian[d][d] = 1;
  for (size_t a = 0; a < snapshot.arrays.size(); ++a) {
    const NamedArray& weight = snapshot.arrays[a];
    if (weight.name.rfind("barrier.", 0) != 0 || weight.shape.size() != 2) continue;
    const NamedArray& bias = snapshot.arrays[a + 1];
    const size_t outputs = weight.shape[1];
    std::vector<double> y(bias.values.begin(), bias.values.end());
    std::vector<std::vector<double>> dy(outputs, std::vector<double>(q.size()));
    for (size_t o = 0; o < outputs; ++o) {
      for (size_t i = 0; i < x.size(); ++i) {
        const double w = weight.values[i * outputs + o];
        y[o] += w * x[i];
        for (size_t d = 0; d < q.size(); ++d) dy[o][d] += w * jacobian[i][d];
      }
      if (outputs > 1 && y[o] <= 0) y[o] = 0, dy[o].assign(q.size(), 0.0);
    }
    x = y, jacobian = dy;
  }
  *slope = jacobian[0];
  return x[0];
}

// Expected values have L_f V and L_G V of the double integrator written out.
TEST(CbfQpRule, StoresThePolicysSampleAndExecutesTheFilteredOne) {
  const Snapshot snapshot = Sample(1);
  Snapshot plain = snapshot;
  plain.acting_rule = "gaussian_policy";
  const auto rule = MakeRule(snapshot, Hockey(), kBatch);
  EXPECT_FALSE(rule->has_constraint());
  const RuleInputs in(kBatch, Hockey().spec);
  std::vector<double> intervention(kBatch);
  ActingDiagnostics diagnostics;
  diagnostics.intervention = intervention.data();
  const std::vector<float> u = Act(MakeRule(plain, Hockey(), kBatch).get(), in).stored;
  const RuleActions acted = Act(rule.get(), in, diagnostics);
  EXPECT_EQ(acted.stored, u);
  int filtered = 0, left = 0;
  for (int r = 0; r < kBatch; ++r) {
    const std::vector<double> q(in.observations.begin() + r * kObs + 6, in.observations.begin() + r * kObs + 12);
    std::vector<double> slope;
    const double value = BarrierAt(snapshot, q, &slope);
    const double low[kActions] = {-1, -1, -1}, high[kActions] = {1, 1, 1};
    BarrierQp qp{kActions, value, 0, &slope[3], low, high};  // position' = velocity, velocity' = action
    for (int i = 0; i < 3; ++i) qp.Lf_V += slope[i] * q[3 + i];
    qp.decay = 0.7, qp.penalty = 200;  // the snapshot's
    const std::vector<double> wanted(u.begin() + r * kActions, u.begin() + (r + 1) * kActions);
    double want[kActions], square = 0;
    SolveBarrierQp(qp, wanted.data(), want);
    for (int i = 0; i < kActions; ++i) {
      EXPECT_NEAR(acted.executed[r * kActions + i], want[i], 1e-5) << "row " << r;
      square += std::pow(acted.executed[r * kActions + i] - wanted[i], 2);
    }
    EXPECT_NEAR(intervention[r], std::sqrt(square), 1e-9);
    (intervention[r] > 0 ? filtered : left) += 1;
  }
  EXPECT_GT(filtered, 3);
  EXPECT_GT(left, 3);
}

TEST(CbfQpRule, ARowGivesTheSameBitsInEveryBatch) {
  testing::ExpectTheSameBitsInEveryBatch(Sample(5), Hockey(), RuleInputs(kBatch, Hockey().spec));
}

TEST(CbfQpRule, LoadReplacesPolicyBarrierAndScalarsOrNothing) {
  const auto rule = MakeRule(Sample(1), Hockey(), kBatch);
  const RuleInputs in(kBatch, Hockey().spec);
  const RuleActions before = Act(rule.get(), in);
  Snapshot next = Sample(2);
  next.scalars["barrier_decay"] = 3;
  Snapshot broken = next;
  broken.scalars["relaxation_penalty"] = 0;
  EXPECT_THAT(std::string(rule->Load(broken).message()), AllOf(HasSubstr("relaxation_penalty"), HasSubstr("above 0")));
  broken = next;
  broken.scalars.erase("barrier_decay");
  EXPECT_THAT(std::string(rule->Load(broken).message()), HasSubstr("barrier_decay"));
  broken = next;
  broken.arrays.back().shape = {2};
  EXPECT_THAT(std::string(rule->Load(broken).message()), HasSubstr("barrier.2.bias"));
  EXPECT_TRUE(Act(rule.get(), in) == before);
  ASSERT_THAT(rule->Load(next), IsOk());
  EXPECT_TRUE(Act(rule.get(), in) == Act(MakeRule(next, Hockey(), kBatch).get(), in));
}

TEST(CbfQpRule, RefusesATaskWithUncontrolledObjects) {
  const Snapshot snapshot = testing::SnapshotForRule("cbf_qp", 22, 2, 8, {16}, 1);
  const absl::Status status =
      MakeActingRule(snapshot, MakeTaskModel("navigation", v1::TaskOptions()).value(), 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("navigation"), HasSubstr("5 uncontrollable constraint states")));
}

TEST(CbfQpRule, DeclaresTheExecutedActionAsNotLearnedFrom) {
  const auto columns = ActingRuleColumns("cbf_qp", kActions).value();
  ASSERT_EQ(columns.size(), 1u);
  EXPECT_EQ(columns.front().name, "executed_action");
  EXPECT_FALSE(columns.front().learning);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
