// Tests equations among the rows of the safe map: against an independent restatement, by what the executed action does
// to them, and at edge cases.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/safety/known_rows.h"
#include "common/safety/safe_map.h"
#include "gtest/gtest.h"
#include "tests/testing/counting_allocator.h"
#include "tests/testing/golden.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom {
namespace {

using nlohmann::json;

std::vector<double> Flat(const json& value) {
  std::vector<double> out;
  for (const json& part : value) {
    if (part.is_array()) {
      for (const double v : Flat(part)) out.push_back(v);
    } else {
      out.push_back(part.get<double>());
    }
  }
  return out;
}

void ExpectNear(const double* got, const std::vector<double>& want, double tolerance, const std::string& what) {
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << what << "[" << i << "]";
  }
}

TEST(Golden, j_equality_rows) {
  DATACOM_GOLDEN_FILES(files, "j_equality_rows");
  const json cases = testing::ReadGoldenJson(files.front()).at("cases");
  EXPECT_EQ(cases.size(), 44u);
  for (const json& c : cases) {
    const int equations = c["equations"], inequalities = c["inequalities"], n = c["n"];
    const std::string what = "case " + c["id"].dump();
    const auto k = Flat(c["cons"]), J_G = Flat(c["J_G"]), drift = Flat(c["drift"]), u = Flat(c["alpha"]);
    SafeMap map({equations + inequalities, n, 0, 0, equations});
    map.Set(SafeMapReduced{k.data(), J_G.data(), drift.data()}, {c["lam"], c["beta"]});
    std::vector<double> raw(n), action(n);
    map.ApplyUnscaled(u.data(), raw.data());
    const double scale = map.Apply(u.data(), action.data());
    ExpectNear(map.basis(), Flat(c["basis"]), 1e-9, what + " basis");
    ExpectNear(map.fixed(), Flat(c["fixed"]), 1e-9, what + " fixed");
    ExpectNear(raw.data(), Flat(c["action_before_rescale"]), 1e-7, what + " action before rescale");
    ExpectNear(action.data(), Flat(c["action"]), 1e-7, what + " action");
    EXPECT_NEAR(map.log_det(), c["log_det"].get<double>(), 1e-7) << what;
    if (equations < n) {  // else there is nothing to scale
      EXPECT_NEAR(scale, c["scale"].get<double>(), 1e-7) << what;
    }
  }
}

struct Problem {
  int inequalities = 1, equations = 1, n = 3;
  std::vector<double> k, J_G, drift;
  SafeMapGains gains{25, 3};
  SafeMapReduced reduced() const { return {k.data(), J_G.data(), drift.data()}; }
  SafeMapDims dims() const { return {inequalities + equations, n, 0, 0, equations}; }
  // J_G a + drift + lambda k of the equation.
  double Residual(int equation, const std::vector<double>& action) const {
    const int row = inequalities + equation;
    double sum = drift[row] + gains.lambda * k[row];
    for (int j = 0; j < n; ++j) sum += J_G[row * n + j] * action[j];
    return sum;
  }
};

// Demands of the equations are small enough to fit into the box. Inequalities may be anywhere.
Problem RandomProblem(int inequalities, int equations, int n, RandomStream* random) {
  Problem p{inequalities, equations, n, {}, {}, {}};
  for (int i = 0; i < inequalities + equations; ++i) {
    const bool equation = i >= inequalities;
    const double kind = random->Uniform();
    p.k.push_back(equation     ? random->Uniform(-1e-3, 1e-3)
                  : kind < 0.5 ? -random->Uniform(0, 2)
                               : random->Uniform(0, 1));
    p.drift.push_back(equation ? random->Uniform(-0.01, 0.01) : random->Normal());
    for (int j = 0; j < n; ++j) p.J_G.push_back(random->Normal());
  }
  return p;
}

TEST(EqualityRows, TheExecutedActionSatisfiesEveryEquationWhateverPolicyAndInequalitiesWant) {
  RandomStream random(StreamKey("test.equalities", {1}));
  int rounds = 0;
  for (const int n : {2, 3, 7, 8}) {
    for (const int equations : {1, 2}) {
      for (const int inequalities : {0, 1, 2, 5, 34}) {
        for (int round = 0; round < 50; ++round) {
          const Problem p = RandomProblem(inequalities, equations, n, &random);
          SafeMap map(p.dims());
          map.Set(p.reduced(), p.gains);
          const double largest = *std::max_element(map.fixed(), map.fixed() + n);
          const double smallest = *std::min_element(map.fixed(), map.fixed() + n);
          if (largest > 1 || smallest < -1) continue;  // nearly parallel equations
          std::vector<double> u(n), action(n);
          for (double& value : u) value = 2 * random.Normal();
          map.Apply(u.data(), action.data());
          for (int i = 0; i < equations; ++i) EXPECT_NEAR(p.Residual(i, action), 0, 1e-12);
          for (const double a : action) EXPECT_LE(std::abs(a), 1 + 1e-15);
          ++rounds;
        }
      }
    }
  }
  EXPECT_GT(rounds, 1900);
}

TEST(EqualityRows, BesideAnEquationAnActiveInequalityIsKeptInTheTangentSpace) {
  RandomStream random(StreamKey("test.equalities", {2}));
  for (int round = 0; round < 200; ++round) {
    Problem p = RandomProblem(1, 1, 3, &random);
    p.k[0] = 0.01, p.drift[0] = 0.5;
    for (int j = 0; j < 3; ++j) p.J_G[j] = j == round % 3 ? 1 : 0, p.J_G[3 + j] = j == (round + 1) % 3 ? 1 : 0.3;
    SafeMap map(p.dims());
    map.Set(p.reduced(), p.gains);
    const double u[3] = {random.Uniform(-1, 1), random.Uniform(-1, 1), random.Uniform(-1, 1)};
    std::vector<double> action(3);
    map.ApplyUnscaled(u, action.data());
    EXPECT_NEAR(p.Residual(0, action), 0, 1e-12);
    EXPECT_NEAR(0.5 + action[round % 3], -25 * 0.01001, 1e-3) << "its rate is -lambda (k + 1e-5)";
  }
}

TEST(EqualityRows, BasisIsTheDerivativeOfTheActionBeforeTheRescaleAndZeroAcrossTheEquations) {
  RandomStream random(StreamKey("test.equalities", {3}));
  for (int round = 0; round < 50; ++round) {
    const int n = 3 + round % 5;
    const Problem p = RandomProblem(round % 4, 2, n, &random);
    SafeMap map(p.dims());
    map.Set(p.reduced(), p.gains);
    std::vector<double> u(n), low(n), high(n);
    for (double& value : u) value = random.Uniform(-0.9, 0.9);
    for (int j = 0; j < n; ++j) {
      std::vector<double> moved = u;
      moved[j] += 0.05;
      map.ApplyUnscaled(moved.data(), high.data());
      moved[j] -= 0.1;
      map.ApplyUnscaled(moved.data(), low.data());
      double along[2] = {0, 0};
      for (int i = 0; i < n; ++i) {
        EXPECT_NEAR((high[i] - low[i]) / 0.1, map.basis()[i * n + j], 1e-9 * (1 + std::abs(high[i])));
        for (int e = 0; e < 2; ++e) along[e] += p.J_G[(p.inequalities + e) * n + i] * map.basis()[i * n + j];
      }
      for (const double change : along) EXPECT_NEAR(change, 0, 1e-12);
    }
  }
}

TEST(EqualityRows, OneEquationAloneProjectsAndCorrectsInClosedForm) {
  const double k = 0.02, J_G[2] = {3, 4}, drift = -0.25, u[2] = {1, -0.5};
  SafeMap map({1, 2, 0, 0, 1});
  map.Set(SafeMapReduced{&k, J_G, &drift}, {10, 3});
  double action[2];
  EXPECT_EQ(map.Apply(u, action), 1.0);
  // u without its part along (0.6, 0.8), plus (0.25 - 10 * 0.02) / 5 along it.
  EXPECT_NEAR(action[0], 1 - 0.6 * 0.2 + 0.6 * 0.01, 1e-15);
  EXPECT_NEAR(action[1], -0.5 - 0.8 * 0.2 + 0.8 * 0.01, 1e-15);
  EXPECT_NEAR(map.log_det(), std::log1p(kLogDetRegularisation), 1e-15) << "one free direction";
}

TEST(EqualityRows, TheDriftOfAnEquationIsNotTruncated) {
  // Row 0 is an inequality, row 1 an equation; the drift -1 helps both.
  const double J_k[4] = {1, 0, 1, 0}, f[2] = {-1, 0}, G[2] = {0, 1};
  double J_G[2], drift[2];
  ReduceTerms({2, 1, 2, 0, 1}, {nullptr, J_k, nullptr, f, G, nullptr}, J_G, drift);
  EXPECT_EQ(drift[0], 0);
  EXPECT_EQ(drift[1], -1);
}

TEST(EqualityRows, AnEquationWithoutInfluenceOrRepeatedHasNoEffect) {
  const double u[3] = {0.2, -0.4, 0.1};
  const double k[3] = {1e-3, 5, 1e-3}, drift[3] = {0.01, 3, 0.01};
  const double J_G[9] = {1, 2, -1, 0, 0, 0, 1, 2, -1};  // the second is 0, the third the first again
  SafeMap one({1, 3, 0, 0, 1}), all({3, 3, 0, 0, 3});
  one.Set(SafeMapReduced{k, J_G, drift}, {25, 3});
  all.Set(SafeMapReduced{k, J_G, drift}, {25, 3});
  double expected[3], action[3];
  one.Apply(u, expected);
  all.Apply(u, action);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(action[i], expected[i]);
  EXPECT_EQ(one.log_det(), all.log_det());
}

TEST(EqualityRows, ADemandBeyondTheBoxFillsItAndKeepsItsDirection) {
  const double k = 1, J_G[2] = {3, 4}, drift = 0, u[2] = {0.6, 0.3};
  SafeMap map({1, 2, 0, 0, 1});
  map.Set(SafeMapReduced{&k, J_G, &drift}, {25, 3});
  double action[2];
  const double scale = map.Apply(u, action);
  // The demand is -(3, 4); its largest entry becomes -1, and only the direction (4, -3) is left to the policy.
  EXPECT_DOUBLE_EQ(action[1], -1);
  EXPECT_NEAR(action[0], -0.75 + scale * 0.8 * (0.8 * 0.6 - 0.6 * 0.3), 1e-15);
  EXPECT_EQ(scale, 0) << "the policy's part would leave the box";
}

TEST(EqualityRows, NaNReachesTheAction) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), u[2] = {0, 0}, J_G[4] = {1, 0, 0, 1};
  for (const bool in_row : {false, true}) {
    const double k[2] = {-1, in_row ? 0 : nan}, drift[2] = {0, 0}, wrong[4] = {1, 0, nan, 1};
    SafeMap map({2, 2, 0, 0, 1});
    map.Set(SafeMapReduced{k, in_row ? wrong : J_G, drift}, {25, 3});
    double action[2];
    map.Apply(u, action);
    EXPECT_TRUE(std::isnan(action[1])) << in_row;
  }
}

// ---- A bead on a circle: p in the plane, its acceleration is the action. Row 1 is the equation.
class Circle : public KnownConstraints {
 public:
  Circle() {
    Add("right", "right", 0.5);
    Add("circle", "circle", 0.02, /*equality=*/true);
    Add("speed", "speed", 0);
  }
  void Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const override {
    const double *const p = at.q, *const v = at.q + 2;
    if (out.k != nullptr) {
      out.k[0] = p[0] - 0.9;
      out.k[1] = (p[0] * p[0] + p[1] * p[1] - 1) / 2;
      out.k[2] = v[0] - 1.5;
    }
    if (out.J_q == nullptr) return;
    const double J[12] = {1, 0, 0, 0, p[0], p[1], 0, 0, 0, 0, 1, 0};
    std::copy_n(J, 12, out.J_q);
  }
};

constexpr ControlAffineDims kBead{4, 2, 4, 0};
constexpr double kGain = 0.02;

struct Bead {
  double p[2] = {-1, 0}, v[2] = {0, 0};
  double radius() const { return std::hypot(p[0], p[1]); }
  void Move(const double* acceleration, double time) {
    for (int i = 0; i < 2; ++i) {
      p[i] += v[i] * time + acceleration[i] * time * time / 2;
      v[i] += acceleration[i] * time;
    }
  }
};

template <class Call>
void WithInput(const Bead& bead, const Call& call) {
  const double q[4] = {bead.p[0], bead.p[1], bead.v[0], bead.v[1]}, f[4] = {bead.v[0], bead.v[1], 0, 0};
  const double G[8] = {0, 0, 0, 0, 1, 0, 0, 1};
  call(KnownRowsInput{q, nullptr, f, G, nullptr});
}

TEST(EqualityRows, RecordsOfEquationsComeLastInTheExactFormWithTheirFullDrift) {
  for (const bool published : {false, true}) {
    KnownRows rows(std::make_shared<Circle>(), {0, 1, 2}, kBead, {{}, published});
    EXPECT_EQ(rows.equalities(), 1);
    Bead bead;
    bead.p[0] = 0.6, bead.p[1] = -0.9, bead.v[0] = -0.8, bead.v[1] = 0.7;
    double records[12];
    WithInput(bead, [&](const KnownRowsInput& at) { rows.Evaluate(at, records); });
    EXPECT_DOUBLE_EQ(records[0], 0.6 - 0.9 + 0.5 * -0.8) << "right";
    EXPECT_DOUBLE_EQ(records[4], -0.8 - 1.5) << "speed";
    const double rate = 0.6 * -0.8 - 0.9 * 0.7, square = 0.8 * 0.8 + 0.7 * 0.7;
    EXPECT_NEAR(records[8], (0.36 + 0.81 - 1) / 2 + kGain * rate, 1e-12) << "circle";
    EXPECT_NEAR(records[9], rate + kGain * square, 1e-9) << "negative, and not truncated";
    EXPECT_NEAR(records[10], kGain * 0.6, 1e-12);
    EXPECT_NEAR(records[11], kGain * -0.9, 1e-12);
  }
}

// Actions are held for 20 ms, pushes for ten of them.
TEST(EqualityRows, TheBaselinesMapKeepsABeadOnItsCircleAndAllocatesNothing) {
  AnalyticMap map(std::make_shared<Circle>(), Circle().viability_gains(), kBead);
  RandomStream random(StreamKey("test.bead", {1}));
  double off = 0, right = -1, travelled = 0, action[2], u[2] = {0, 0};
  Bead bead;
  for (int step = 0; step < 5000; ++step) {
    for (double& push : u) push = step % 10 == 0 ? random.Uniform(-1, 1) : push;
    WithInput(bead, [&](const KnownRowsInput& at) {
      const auto act = [&] {
        map.Set(at, {25, 3});
        map.Apply(u, action);
      };
      EXPECT_EQ(testing::kCountsAllocations ? testing::CountAllocations(act) : 0u, 0u);
    });
    for (double& a : action) a = std::clamp(a, -1.0, 1.0);
    bead.Move(action, 0.02);
    travelled += 0.02 * std::hypot(bead.v[0], bead.v[1]);
    off = testing::LargerOrNan(std::abs(bead.radius() - 1), off);
    right = testing::LargerOrNan(bead.p[0], right);
  }
  EXPECT_LT(off, 1e-3);
  EXPECT_LT(right, 0.91);
  EXPECT_GT(travelled, 5) << "it moves, at 8 cm/s on average";
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
