// Tests known rows against finite differences along the nominal model, and the map with several rows: one active row is
// kept, agreeing rows are all kept, conflicting rows give a compromise.
#include "common/safety/known_rows.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/safety/safe_map.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr SafeMapGains kPublished{25, 3};

TaskModel Model(const std::string& task) { return MakeTaskModel(task, v1::TaskOptions()).value(); }

// The control-affine model at an observation with random entries.
struct State {
  State(const TaskModel& model, RandomStream* random) : dims(model.dynamics->dims()) {
    std::vector<double> observation(dims.obs);
    for (double& value : observation) value = random->Uniform(-1.5, 1.5);
    q.resize(dims.q), x.resize(dims.x), x_dot.resize(dims.x), f.resize(dims.q), G.resize(dims.q * dims.action);
    model.dynamics->Evaluate(observation.data(), {q.data(), x.data(), x_dot.data(), f.data(), G.data()});
  }
  KnownRowsInput input() const { return {q.data(), x.data(), f.data(), G.data(), x_dot.data()}; }
  // The state after `step` seconds of the nominal model under action u, to first order; f is updated where it is
  // velocity.
  State After(double step, const std::vector<double>& u, bool own, bool objects) const {
    State next = *this;
    for (int d = 0; d < dims.q; ++d) {
      double rate = own ? f[d] : 0;
      for (int j = 0; j < dims.action; ++j) rate += G[d * dims.action + j] * u[j];
      next.q[d] += step * rate;
    }
    for (int d = 0; d < dims.x && objects; ++d) next.x[d] += step * x_dot[d];
    if (dims.q == 2 * dims.action) std::copy_n(next.q.begin() + dims.action, dims.action, next.f.begin());
    return next;
  }

  ControlAffineDims dims;
  std::vector<double> q, x, x_dot, f, G;
};

// Values of all known rows at a state.
std::vector<double> Values(KnownRows* rows, const State& state) {
  const int size = JoinedRowSize(state.dims.action);
  std::vector<double> records(rows->count() * size), values(rows->count());
  rows->Evaluate(state.input(), records.data());
  for (int i = 0; i < rows->count(); ++i) values[i] = records[i * size];
  return values;
}

std::vector<double> Rates(KnownRows* rows, const State& state, const std::vector<double>& u, bool own, bool objects) {
  constexpr double kStep = 1e-5;
  const std::vector<double> high = Values(rows, state.After(kStep, u, own, objects));
  std::vector<double> rates = Values(rows, state.After(-kStep, u, own, objects));
  for (size_t i = 0; i < rates.size(); ++i) rates[i] = (high[i] - rates[i]) / (2 * kStep);
  return rates;
}

class KnownRowsOf : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> TasksWithKnownRows() {
  std::vector<std::string> names = TaskNames();
  std::erase_if(names, [](const std::string& name) { return Model(name).known_constraints == nullptr; });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Tasks, KnownRowsOf, ::testing::ValuesIn(TasksWithKnownRows()),
                         [](const auto& info) { return info.param; });

TEST_P(KnownRowsOf, DerivativesEqualFiniteDifferencesAlongTheNominalModel) {
  const TaskModel model = Model(GetParam());
  KnownRows rows(model.known_constraints, SelectKnownRows(model, model.known_constraints->names()).value(),
                 model.dynamics->dims());
  std::vector<int> order = SelectKnownRows(model, model.known_constraints->names()).value();  // equations come last
  std::stable_partition(order.begin(), order.end(), [&](int row) { return !model.known_constraints->equality(row); });
  RandomStream random(1);
  for (int round = 0; round < 100; ++round) {
    const State state(model, &random);
    const int n = state.dims.action, size = JoinedRowSize(n);
    std::vector<double> records(rows.count() * size), u(n, 0.0), k(rows.count());
    rows.Evaluate(state.input(), records.data());
    model.known_constraints->Evaluate({state.q.data(), state.x.data()}, {k.data(), nullptr, nullptr});
    const std::vector<double> own = Rates(&rows, state, u, true, false), still = Rates(&rows, state, u, false, false);
    const std::vector<double> objects = Rates(&rows, state, u, false, true);
    for (int i = 0; i < rows.count(); ++i) {
      EXPECT_NEAR(still[i], 0, 1e-12);
      const double drift = model.known_constraints->equality(order[i]) ? own[i] : std::max(own[i], 0.0);
      EXPECT_NEAR(records[i * size + 1], drift + objects[i], 1e-6) << "drift of row " << i;
      if (model.known_constraints->viability_gains()[order[i]] == 0) {
        EXPECT_EQ(records[i * size], k[order[i]]) << "row " << i;
      }
    }
    for (int j = 0; j < n; ++j) {
      u.assign(n, 0.0);
      u[j] = 1;
      const std::vector<double> moved = Rates(&rows, state, u, false, false);
      for (int i = 0; i < rows.count(); ++i) {
        EXPECT_NEAR(records[i * size + 2 + j], moved[i], 1e-6) << "row " << i << ", action " << j;
      }
    }
  }
}

TEST(KnownRows, ARowOnPositionsIsItsValuePlusGainTimesRate) {
  const TaskModel model = Model("air_hockey");
  const std::vector<double>& gains = model.known_constraints->viability_gains();
  KnownRows rows(model.known_constraints, SelectKnownRows(model, model.known_constraints->names()).value(),
                 model.dynamics->dims());
  RandomStream random(2);
  for (int round = 0; round < 50; ++round) {
    const State state(model, &random);
    std::vector<double> k(rows.count()), later(rows.count()), q = state.q;
    model.known_constraints->Evaluate({q.data()}, {k.data(), nullptr, nullptr});
    for (int j = 0; j < 3; ++j) q[j] += 1e-6 * state.f[j];
    model.known_constraints->Evaluate({q.data()}, {later.data(), nullptr, nullptr});
    const std::vector<double> c = Values(&rows, state);
    for (int i = 0; i < rows.count(); ++i) EXPECT_NEAR(c[i], k[i] + gains[i] * (later[i] - k[i]) / 1e-6, 1e-5) << i;
  }
}

TEST(KnownRows, SelectedRowsHaveTheSameValuesAsAmongAllRows) {
  const TaskModel model = Model("air_hockey");
  const ControlAffineDims dims = model.dynamics->dims();
  KnownRows all(model.known_constraints, SelectKnownRows(model, model.known_constraints->names()).value(), dims);
  const std::vector<int> chosen = SelectKnownRows(model, {"velocity_2_lower", "end_effector", "joint_1_upper"}).value();
  KnownRows some(model.known_constraints, chosen, dims), none;
  RandomStream random(3);
  const State state(model, &random);
  std::vector<double> every(all.count() * 5), part(some.count() * 5);
  all.Evaluate(state.input(), every.data());
  some.Evaluate(state.input(), part.data());
  none.Evaluate(state.input(), nullptr);
  for (size_t i = 0; i < chosen.size(); ++i) {
    for (int c = 0; c < 5; ++c) EXPECT_EQ(part[i * 5 + c], every[chosen[i] * 5 + c]);
  }
}

TEST(SelectKnownRows, GivesRowsAndGroupsOnceInTheTasksOrder) {
  const TaskModel model = Model("navigation");
  EXPECT_THAT(*SelectKnownRows(model, {"opponent", "wall_y_upper", "opponent_base"}), ElementsAre(1, 4, 5));
  EXPECT_TRUE(SelectKnownRows(model, std::vector<std::string>())->empty());
}

TEST(SelectKnownRows, AnUnknownNameListsTheTasksRows) {
  v1::Constraints constraints;
  constraints.add_known("ceiling");
  EXPECT_THAT(std::string(SelectKnownRows(Model("navigation"), constraints).status().message()),
              AllOf(HasSubstr("constraints.known"), HasSubstr("\"ceiling\""),
                    HasSubstr("groups wall, opponent, approach"), HasSubstr("wall_x_upper, wall_y_upper")));
  EXPECT_THAT(std::string(SelectKnownRows(Model("cartpole"), constraints).status().message()),
              AllOf(HasSubstr("ceiling"), HasSubstr("cartpole has no known constraints")));
}

// ---- Several rows in one map. `Learned` is a row far inside the safe set that hardly influences the action.
struct Learned {
  double k = -3, J_k[2] = {0.3, -0.2}, f[2] = {0, 0}, G[4] = {1, 0, 0, 1};
  SafeMapTerms terms() const { return {&k, J_k, nullptr, f, G, nullptr}; }
};

// Returns a_raw and the rate J_G a + drift of each record.
std::vector<double> RatesOfMap(const std::vector<double>& records, const double* u, double* action) {
  const int known = static_cast<int>(records.size()) / 4;
  const Learned learned;
  SafeMap map({1 + known, 2, 2, 0});
  map.Set(learned.terms(), records.data(), kPublished);
  map.ApplyUnscaled(u, action);
  std::vector<double> rates;
  for (int i = 0; i < known; ++i) {
    const double* const row = records.data() + i * 4;
    rates.push_back(row[1] + row[2] * action[0] + row[3] * action[1]);
  }
  return rates;
}

TEST(JoinedRows, WithoutKnownRowsTheMapHasTheBitsOfOneConstraint) {
  const Learned learned;
  SafeMap alone({1, 2, 2, 0}), joined({1, 2, 2, 0});
  alone.Set(learned.terms(), kPublished);
  joined.Set(learned.terms(), nullptr, kPublished);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(alone.basis()[i], joined.basis()[i]);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(alone.offset()[i], joined.offset()[i]);
  EXPECT_EQ(alone.log_det(), joined.log_det());
}

TEST(JoinedRows, AnActiveRowIsKeptForAnyPolicyAction) {
  RandomStream random(4);
  for (int round = 0; round < 300; ++round) {
    const double angle = random.Uniform(-M_PI, M_PI), size = std::pow(10, random.Uniform(-1, 1));
    const double k = random.Uniform(0, 0.3), drift = random.Uniform(0, 2);
    const double u[2] = {random.Uniform(-1, 1), random.Uniform(-1, 1)};
    double action[2];
    const double rate = RatesOfMap({k, drift, size * std::cos(angle), size * std::sin(angle)}, u, action)[0];
    EXPECT_NEAR(rate, -25 * (k + 1e-5), 1e-3 * (1 + 25 * k)) << "back to the boundary at the rate atacom_gain";
  }
}

TEST(JoinedRows, AgreeingRowsAreAllKept) {
  RandomStream random(5);
  for (int round = 0; round < 300; ++round) {
    const double angle = random.Uniform(-M_PI, M_PI), between = random.Uniform(0.3, 2.8);
    const double u[2] = {random.Uniform(-1, 1), random.Uniform(-1, 1)};
    double action[2];
    const std::vector<double> rates = RatesOfMap({0.1, 0.5, std::cos(angle), std::sin(angle),  //
                                                  0.02, 1.0, std::cos(angle + between), std::sin(angle + between)},
                                                 u, action);
    EXPECT_NEAR(rates[0], -2.5, 1e-2);
    EXPECT_NEAR(rates[1], -0.5, 1e-2);
  }
}

// Two violated rows with opposite gradients: the map takes the mean of their demands for any policy action.
TEST(JoinedRows, OppositeViolatedRowsGiveTheLeastSquaresCompromise) {
  for (const double more : {0.0, 0.1, 0.4}) {
    const double u[2] = {1, 0.7};
    double action[2];
    const std::vector<double> rates = RatesOfMap({0.2 + more, 0, 1, 0, 0.2, 0, -1, 0}, u, action);
    EXPECT_NEAR(action[0], -25 * more / 2, 1e-3) << "towards reducing the larger violation";
    EXPECT_NEAR(action[1], 0.7, 1e-2) << "the policy's in a direction that affects neither";
    EXPECT_NEAR(rates[0], -rates[1], 1e-9);
  }
}

// An active row outweighs an inactive one: the weight of a row depends only on its slack.
TEST(JoinedRows, ARowWithSlackGivesWayToAnActiveRow) {
  const double u[2] = {0, 0};
  double action[2];
  RatesOfMap({0.1, 0, 1, 0, -0.2, 0, -1, 0}, u, action);
  EXPECT_NEAR(action[0], -2.5, 1e-3);
}

TEST(JoinedRows, MoreActiveRowsThanActionsGiveAFiniteActionInsideTheBox) {
  RandomStream random(6);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> records;
    for (int i = 0; i < 7; ++i) {
      records.push_back(random.Uniform() < 0.5 ? 0 : random.Uniform(0, 1));
      records.push_back(random.Uniform(0, 3));
      for (int j = 0; j < 2; ++j) records.push_back(random.Uniform() < 0.1 ? 0 : random.Normal());
    }
    const Learned learned;
    SafeMap map({8, 2, 2, 0});
    map.Set(learned.terms(), records.data(), kPublished);
    const double u[2] = {random.Uniform(-1, 1), random.Uniform(-1, 1)};
    double action[2];
    map.Apply(u, action);
    for (const double a : action) EXPECT_LE(std::abs(a), 1.0);
  }
}

// The nominal arm with a new random push every 10 steps, at 50 Hz and a gain of 25: the known rows keep the arm within
// their limits, while the same pushes without the map leave them.
TEST(JoinedRows, KeepTheNominalArmInsideItsLimitsUnderAnyPolicy) {
  const TaskModel model = Model("air_hockey");
  KnownRows rows(model.known_constraints, SelectKnownRows(model, model.known_constraints->names()).value(),
                 model.dynamics->dims());
  double worst[2] = {-1, -1};
  for (const bool joined : {false, true}) {
    RandomStream random(7);
    for (int episode = 0; episode < 20; ++episode) {
      State state(model, &random);
      const double start[6] = {-1.15570723, 1.30024401, 1.44280414, 0, 0, 0};
      std::copy_n(start, 6, state.q.begin());
      std::fill(state.f.begin(), state.f.end(), 0.0);
      double u[3] = {0, 0, 0};
      for (int step = 0; step < 300; ++step) {
        for (double& push : u) push = step % 10 == 0 ? random.Uniform(-1.5, 1.5) : push;
        const double k = -3, J_k[6] = {};
        std::vector<double> records(rows.count() * 5), action(u, u + 3);
        rows.Evaluate(state.input(), records.data());
        SafeMap map({1 + rows.count(), 3, 6, 0});
        map.Set({&k, J_k, nullptr, state.f.data(), state.G.data(), nullptr}, records.data(), kPublished);
        if (joined) map.Apply(u, action.data());
        for (double& a : action) a = std::clamp(a, -1.0, 1.0);
        state = state.After(0.02, action, true, false);
        std::vector<double> violation(rows.count());
        model.known_constraints->Evaluate({state.q.data()}, {violation.data(), nullptr, nullptr});
        for (const double k_of_row : violation) worst[joined] = testing::LargerOrNan(k_of_row, worst[joined]);
      }
    }
  }
  EXPECT_GT(worst[0], 0.5);
  EXPECT_LT(worst[1], 0.01);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
