#include "common/acting/acting_rule.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/acting/learned_constraint.h"
#include "common/base/random.h"
#include "common/nn/mlp.h"
#include "common/safety/known_rows.h"
#include "common/safety/safe_map.h"
#include "common/tasks/navigation/dynamics.h"
#include "common/tasks/task.h"
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
using testing::MakeRule;
using testing::RuleInputs;

// Two actions, uncontrolled objects and a box beyond [-1, 1].
TaskModel Navigation() {
  TaskModel model;
  model.spec.name = "navigation";
  model.spec.obs_dim = 22;
  model.spec.action_dim = 2;
  model.spec.action_low = {-0.5, -1.5};
  model.spec.action_high = {1.0, 1.5};
  model.dynamics = std::make_shared<navigation::Dynamics>(navigation::Frame::kWorld);
  return model;
}

Snapshot Sample(uint64_t seed) { return testing::SafeMapSnapshot(22, 2, 8, {128, 128}, seed); }

RuleInputs Inputs(int batch) { return {batch, Navigation().spec}; }

double Net(const Snapshot& snapshot, const std::string& name, int outputs, bool constraint,
           const std::vector<float>& in, int output) {
  MlpSpec form{name, static_cast<int>(in.size()), outputs};
  if (constraint && name != "constraint.value") form.hidden = Mlp::Hidden::kSigmoid;
  if (name == "constraint.mean" || name == "constraint.value") form.output = Mlp::Output::kSoftplus;
  Mlp mlp(snapshot, form, 1);
  std::vector<float> out(outputs);
  mlp.Forward(1, in.data(), out.data());
  return out[output];
}

TEST(SnapshotCheck, AllowsAGradientOfReluAndSigmoidUnitsOnly) {
  Snapshot snapshot;
  testing::AddNet("net", {4, 8, 1}, 1, &snapshot);
  const auto check = [&](Mlp::Hidden hidden) {
    SnapshotForm form;
    form.nets = {{"net", 4, 1, hidden, Mlp::Output::kLinear, /*gradient=*/true}};
    return SnapshotCheck::Make(form, snapshot).status();
  };
  EXPECT_THAT(check(Mlp::Hidden::kRelu), IsOk());
  EXPECT_THAT(check(Mlp::Hidden::kSigmoid), IsOk());
  for (const Mlp::Hidden hidden : {Mlp::Hidden::kTanh, Mlp::Hidden::kSwish}) {
    EXPECT_EQ(check(hidden).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(check(hidden).message()), HasSubstr("net net has hidden units without a gradient"));
  }
}

TEST(SnapshotCheck, RefusesANetOfAnotherShapeNamingArrayAndShapes) {
  Snapshot snapshot, other;
  testing::AddNet("net", {4, 8, 1}, 1, &snapshot);
  testing::AddNet("net", {4, 9, 1}, 1, &other);
  const auto make = [&](const MlpSpec& net) {
    SnapshotForm form;
    form.nets = {net};
    return SnapshotCheck::Make(form, snapshot);
  };
  const auto check = make({"net", 4, 1});
  ASSERT_THAT(check, IsOk());
  const absl::Status status = check->Check(other);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("net.0.weight"), HasSubstr("[4, 9]"), HasSubstr("[4, 8]")));
  EXPECT_THAT(std::string(make({"absent", 4, 1}).status().message()), HasSubstr("absent.0.weight"));
  EXPECT_THAT(std::string(make({"net", 5, 1}).status().message()), HasSubstr("[5, 8]"));
  EXPECT_THAT(std::string(make({"net", 4, 2}).status().message()), HasSubstr("net.1.weight"));
  snapshot.arrays[0].values.pop_back();
  EXPECT_EQ(check->Check(snapshot).code(), absl::StatusCode::kInvalidArgument);
}

TEST(GaussianPolicy, EqualsTheFormulaScaledToTheBox) {
  Snapshot snapshot = Sample(1);
  snapshot.acting_rule = "gaussian_policy";
  const auto rule = MakeRule(snapshot, Navigation(), 4);
  EXPECT_FALSE(rule->has_constraint());
  EXPECT_EQ(rule->noise_dim(), 2);
  const RuleInputs in = Inputs(4);
  const std::vector<float> actions = Act(rule.get(), in).stored;
  for (int r = 0; r < 4; ++r) {
    const std::vector<float> obs(in.observations.begin() + r * 22, in.observations.begin() + (r + 1) * 22);
    for (int i = 0; i < 2; ++i) {
      const double mean = Net(snapshot, "actor.mean", 2, false, obs, i);
      const double log_std = Net(snapshot, "actor.log_std", 2, false, obs, i);
      const double squashed = std::tanh(mean + std::exp(std::min(2.0, std::max(-20.0, log_std))) * in.noise[r * 2 + i]);
      const double want = i == 0 ? squashed * 0.75 + 0.25 : squashed * 1.5;
      EXPECT_NEAR(actions[r * 2 + i], want, 1e-6);
    }
  }
}

TEST(GaussianPolicy, TakesADemonstrationInPlaceOfItsSample) {
  Snapshot snapshot = Sample(1);
  snapshot.acting_rule = "gaussian_policy";
  const auto rule = MakeRule(snapshot, Navigation(), 3);
  const RuleInputs in = Inputs(3);
  const std::vector<float> own = Act(rule.get(), in).stored;
  const float none = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> given = {none, 7, 0.25f, -0.75f, none, none};
  ActingInputs inputs = in.From();
  inputs.proposals = given.data();
  std::vector<float> actions(6);
  rule->Act(3, inputs, actions.data(), {});
  EXPECT_THAT(actions, ::testing::ElementsAre(own[0], own[1], 0.25f, -0.75f, own[4], own[5]));
}

// The sample that a policy without a filter draws, given as a demonstration, with other noise.
TEST(SafeMapRule, FiltersADemonstrationLikeASample) {
  const TaskModel model = Navigation();
  Snapshot plain = Sample(1);
  plain.acting_rule = "gaussian_policy";
  RuleInputs in = Inputs(8);
  const std::vector<float> u = Act(MakeRule(plain, model, 8).get(), in).stored;
  const auto rule = MakeRule(Sample(1), model, 8);
  const std::vector<float> want = Act(rule.get(), in).stored;
  FillNormal(9, in.noise.data(), in.noise.size());
  EXPECT_NE(Act(rule.get(), in).stored, want);
  ActingInputs inputs = in.From();
  inputs.proposals = u.data();
  std::vector<float> actions(16);
  rule->Act(8, inputs, actions.data(), {});
  EXPECT_EQ(actions, want);
}

// The learned constraint's value at z.
double RiskOf(const Snapshot& snapshot, const std::vector<float>& z) {
  if (snapshot.Find("constraint.value.0.weight") != nullptr) return Net(snapshot, "constraint.value", 1, true, z, 0);
  return Net(snapshot, "constraint.mean", 1, true, z, 0) +
         0.195 * std::exp(Net(snapshot, "constraint.log_std", 1, true, z, 0));
}

// A direct implementation: nets one row at a time, dk/dz by central differences, the general singular-value map.
void ExpectActsAsASlowLiteralRestatement(const Snapshot& snapshot, float step) {
  const TaskModel model = Navigation();
  Snapshot plain = snapshot;
  plain.acting_rule = "gaussian_policy";
  const auto rule = MakeRule(snapshot, model, 8);
  const RuleInputs in = Inputs(8);
  std::vector<double> k(8), cvar(8), intervention(8);
  const std::vector<float> actions = Act(rule.get(), in, {k.data(), cvar.data(), intervention.data()}).stored;
  const std::vector<float> u = Act(MakeRule(plain, model, 8).get(), in).stored;
  const std::vector<const float*> columns = rule->columns();
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(std::vector<float>(columns[0], columns[0] + 16), u);
  EXPECT_TRUE(rule->has_constraint());
  for (int r = 0; r < 8; ++r) {
    const std::vector<double> obs(in.observations.begin() + r * 22, in.observations.begin() + (r + 1) * 22);
    std::vector<double> z(8), x_dot(5), f(3), G(6), gradient(8);
    model.dynamics->Evaluate(obs.data(), {z.data(), z.data() + 3, x_dot.data(), f.data(), G.data()});
    const auto risk = [&snapshot](const std::vector<float>& at) { return RiskOf(snapshot, at); };
    std::vector<float> at(z.begin(), z.end());
    EXPECT_NEAR(cvar[r], risk(at), 1e-6);
    EXPECT_NEAR(k[r], risk(at) - 0.8, 1e-6);
    EXPECT_EQ(columns[1][r], static_cast<float>(cvar[r]));
    EXPECT_EQ(columns[2][r], static_cast<float>(cvar[r] - k[r]));
    for (int i = 0; i < 8; ++i) {
      auto low = at, high = at;
      low[i] -= step;
      high[i] += step;
      gradient[i] = (risk(high) - risk(low)) / (static_cast<double>(high[i]) - low[i]);
    }
    double J_G[2] = {0, 0}, drift = 0;
    for (int a = 0; a < 2; ++a) {
      for (int d = 0; d < 3; ++d) J_G[a] += gradient[d] * G[d * 2 + a];
    }
    for (int d = 0; d < 5; ++d) drift += gradient[3 + d] * x_dot[d];
    SafeMap map({1, 2, 0, 0});
    map.SetBySingularValues({&k[r], J_G, &drift}, {60, 3});
    const double tangent[2] = {u[r * 2], u[r * 2 + 1]};
    double want[2];
    map.Apply(tangent, want);
    for (int i = 0; i < 2; ++i) EXPECT_NEAR(actions[r * 2 + i], want[i], 2e-3) << "row " << r;
    EXPECT_NEAR(intervention[r], std::hypot(actions[r * 2] - tangent[0], actions[r * 2 + 1] - tangent[1]), 1e-9);
    EXPECT_LE(std::max(std::abs(actions[r * 2]), std::abs(actions[r * 2 + 1])), 1.0f);
  }
}

TEST(SafeMapRule, EqualsADirectImplementationWithCVaR) {
  ExpectActsAsASlowLiteralRestatement(Sample(3), /*step=*/0.01f);
}

// A rectifier has a kink: with small steps and few units most differences stay on one side of it.
TEST(SafeMapRule, EqualsADirectImplementationWithAQuantile) {
  ExpectActsAsASlowLiteralRestatement(testing::QuantileSnapshot(22, 2, 8, {16, 16, 16}, 4), /*step=*/0.001f);
}

Snapshot Joined(uint64_t seed, const std::vector<std::string>& rows) {
  Snapshot snapshot = testing::SafeMapSnapshot(16, 3, 6, {32, 32}, seed);
  for (const std::string& row : rows) snapshot.scalars["known_constraint." + row] = 1;
  return snapshot;
}

// Takes k from the rule without known rows and u from the policy; forms the map and its records by hand.
TEST(SafeMapRule, AddsTheKnownRowsThatTheSnapshotNames) {
  const TaskModel model = testing::Hockey();
  const std::vector<std::string> names = {"mallet_x_lower", "velocity_1_upper", "joint_3_upper"};
  const Snapshot snapshot = Joined(6, names);
  Snapshot plain = snapshot;
  plain.acting_rule = "gaussian_policy";
  const int batch = 32;
  std::vector<float> observations(batch * 16), noise(batch * 3), actions(batch * 3), u(batch * 3);
  FillNormal(1, observations.data(), batch * 16);
  FillNormal(2, noise.data(), batch * 3);
  std::vector<double> k(batch);
  const auto rule = MakeActingRule(snapshot, model, batch).value();
  rule->Act(batch, {observations.data(), noise.data()}, actions.data(), {k.data(), nullptr, nullptr});
  MakeActingRule(plain, model, batch).value()->Act(batch, {observations.data(), noise.data()}, u.data(), {});
  KnownRows known(model.known_constraints, SelectKnownRows(model, names).value(), model.dynamics->dims());
  LearnedConstraint constraint =
      LearnedConstraint(snapshot, ActingRuleForm("safe_map", SnapshotDims::Of(model)).value(), batch);
  constraint.Set(snapshot);
  for (int r = 0; r < batch; ++r) {
    const std::vector<double> observation(observations.begin() + r * 16, observations.begin() + (r + 1) * 16);
    std::vector<double> q(6), f(6), G(18), records(3 * 5), gradient(6),
        tangent(u.begin() + r * 3, u.begin() + r * 3 + 3);
    model.dynamics->Evaluate(observation.data(), {q.data(), nullptr, nullptr, f.data(), G.data()});
    known.Evaluate({q.data(), nullptr, f.data(), G.data(), nullptr}, records.data());
    const std::vector<float> z(q.begin(), q.end());
    constraint.Evaluate(1, z.data());
    EXPECT_NEAR(constraint.Row(0, gradient.data()) - 0.8, k[r], 1e-6) << "k still belongs to the learned constraint";
    SafeMap map({4, 3, 6, 0});
    map.Set({&k[r], gradient.data(), nullptr, f.data(), G.data(), nullptr}, records.data(), {60, 3});
    double want[3];
    map.Apply(tangent.data(), want);
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(actions[r * 3 + i], want[i], 1e-5) << "row " << r;
  }
}

TEST(SafeMapRule, RefusesUnknownOrChangedKnownRows) {
  const TaskModel model = testing::Hockey();
  EXPECT_THAT(std::string(MakeActingRule(Joined(1, {"ceiling"}), model, 1).status().message()),
              AllOf(HasSubstr("ceiling"), HasSubstr("air_hockey"), HasSubstr("mallet_x_lower")));
  const auto rule = MakeActingRule(Joined(1, {"joint_1_upper", "joint_2_upper"}), model, 1).value();
  EXPECT_THAT(rule->Load(Joined(2, {"joint_2_upper", "joint_1_upper"})), IsOk());
  for (const auto& other : {std::vector<std::string>{},
                            {"joint_1_upper"},
                            {"joint_1_upper", "joint_3_upper"},
                            {"joint_1_upper", "joint_2_upper", "joint_3_upper"}}) {
    const absl::Status status = rule->Load(Joined(2, other));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("[joint_1_upper, joint_2_upper]"));
  }
}

TEST(ActingRule, ARowGivesTheSameBitsInEveryBatch) {
  Snapshot plain = Sample(5);
  plain.acting_rule = "gaussian_policy";
  for (const Snapshot& snapshot : {plain, Sample(5), testing::QuantileSnapshot(22, 2, 8, {32, 32, 32}, 5)}) {
    testing::ExpectTheSameBitsInEveryBatch(snapshot, Navigation(), Inputs(16));
  }
}

TEST(ActingRule, LoadReplacesEverythingOrNothing) {
  const auto rule = MakeRule(Sample(1), Navigation(), 2);
  const RuleInputs in = Inputs(2);
  const auto before = Act(rule.get(), in);
  Snapshot broken = Sample(2);
  broken.arrays.back().shape = {2};
  EXPECT_EQ(rule->Load(broken).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Act(rule.get(), in) == before) << "a refused snapshot changes nothing";
  ASSERT_THAT(rule->Load(Sample(2)), IsOk());
  EXPECT_TRUE(Act(rule.get(), in) == Act(MakeRule(Sample(2), Navigation(), 2).get(), in));
}

TEST(ActingRule, RefusalsNameTheError) {
  const auto message = [](const Snapshot& s) {
    return std::string(MakeActingRule(s, Navigation(), 1).status().message());
  };
  Snapshot s = Sample(1);
  s.acting_rule = "qp";
  EXPECT_EQ(MakeActingRule(s, Navigation(), 1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(message(s), AllOf(HasSubstr("qp"), HasSubstr("gaussian_policy"), HasSubstr("safe_map")));
  s = Sample(1);
  s.scalars.erase("risk_margin");
  EXPECT_THAT(message(s), AllOf(HasSubstr("risk_margin"), HasSubstr("safe_map")));
  s = Sample(1);
  s.scalars["delta"] = std::nan("");
  EXPECT_THAT(message(s), HasSubstr("delta"));
  s = Sample(1);
  s.arrays.erase(s.arrays.begin());
  EXPECT_THAT(message(s), HasSubstr("actor.mean.0.weight"));
  s = testing::SafeMapSnapshot(22, 2, 9, {8}, 1);
  EXPECT_THAT(message(s), AllOf(HasSubstr("constraint."), HasSubstr("[9, 8]"), HasSubstr("[8, 8]")));
  const auto rule = MakeRule(Sample(1), Navigation(), 1);
  s = Sample(1);
  s.acting_rule = "gaussian_policy";
  EXPECT_THAT(std::string(rule->Load(s).message()), AllOf(HasSubstr("gaussian_policy"), HasSubstr("safe_map")));
}

TEST(ActingRule, TheColumnsOfARuleAreKnownBeforeItIsMade) {
  EXPECT_TRUE(ActingRuleColumns("gaussian_policy", 2)->empty());
  const std::vector<Column> columns = *ActingRuleColumns("safe_map", 2);
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(columns[0].name, "raw_action");
  EXPECT_EQ(columns[0].width, 2u);
  EXPECT_EQ(columns[1].name, "cvar");
  EXPECT_EQ(columns[2].name, "delta");
  for (const Column& column : columns) EXPECT_FALSE(column.learning) << column.name;
  EXPECT_EQ(ActingRuleColumns("qp", 2).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
