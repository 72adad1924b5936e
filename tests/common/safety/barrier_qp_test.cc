// Tests the barrier's filter against the optimality conditions, brute force, and the golden solutions.
#include "common/safety/barrier_qp.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"

namespace datacom {
namespace {

struct Case {
  std::vector<double> L, low, high, wanted;
  BarrierQp qp;  // points into the other fields: not copied
};

void Draw(int n, RandomStream* random, Case* c) {
  const double size = std::pow(10, random->Uniform(-2, 1));
  c->L.clear(), c->low.clear(), c->high.clear(), c->wanted.clear();
  for (int i = 0; i < n; ++i) {
    c->L.push_back(random->Uniform(0, 1) < 0.1 ? 0 : size * random->Normal());
    c->low.push_back(-random->Uniform(0.2, 1));
    c->high.push_back(random->Uniform(0.2, 1));
    c->wanted.push_back(random->Normal());  // also outside the box
  }
  c->qp = {n, random->Normal(), random->Normal(), c->L.data(), c->low.data(), c->high.data()};
  c->qp.decay = random->Uniform(0, 2);
  c->qp.penalty = std::pow(10, random->Uniform(-1, 3));
}

double Constraint(const BarrierQp& qp, const double* u) {
  double value = qp.Lf_V + qp.decay * qp.V;
  for (int i = 0; i < qp.n; ++i) value += qp.LG_V[i] * u[i];
  return value;
}

// The objective of u with its best relaxation.
double Objective(const BarrierQp& qp, const std::vector<double>& wanted, const double* u) {
  double sum = qp.penalty * std::max(Constraint(qp, u), 0.0);
  for (int i = 0; i < qp.n; ++i) sum += (u[i] - wanted[i]) * (u[i] - wanted[i]);
  return sum;
}

TEST(BarrierQp, SolutionsMeetTheOptimalityConditions) {
  RandomStream random(1);
  Case c;
  int free = 0, active = 0, relaxed = 0;
  for (int number = 0; number < 4000; ++number) {
    Draw(1 + number % 4, &random, &c);
    std::vector<double> u(c.qp.n);
    const BarrierQpSolution found = SolveBarrierQp(c.qp, c.wanted.data(), u.data());
    const double nu = found.multiplier, violation = Constraint(c.qp, u.data());
    const double scale = 1 + std::abs(c.qp.Lf_V) + std::abs(c.qp.V);
    ASSERT_GE(nu, 0);
    ASSERT_LE(nu, c.qp.penalty);
    ASSERT_GE(found.relaxation, 0);
    EXPECT_LE(violation, found.relaxation + 1e-9 * scale);
    EXPECT_TRUE(nu == 0 || std::abs(violation - found.relaxation) <= 1e-9 * scale) << "complementary";
    EXPECT_TRUE(found.relaxation == 0 || nu == c.qp.penalty);
    for (int i = 0; i < c.qp.n; ++i) {  // 2 (u - wanted) + nu L: 0 inside, pushing outwards at a bound
      EXPECT_GE(u[i], c.low[i]);
      EXPECT_LE(u[i], c.high[i]);
      const double slope = 2 * (u[i] - c.wanted[i]) + nu * c.L[i], tolerance = 1e-9 * (1 + nu * std::abs(c.L[i]));
      EXPECT_TRUE(u[i] == c.low[i] || slope <= tolerance) << slope;
      EXPECT_TRUE(u[i] == c.high[i] || slope >= -tolerance) << slope;
    }
    free += nu == 0, active += nu > 0 && found.relaxation == 0, relaxed += found.relaxation > 0;
  }
  EXPECT_GT(std::min({free, active, relaxed}), 400) << "all kinds of solutions";
}

TEST(BarrierQp, NoActionOnAFineGridIsBetter) {
  RandomStream random(2);
  Case c;
  constexpr int kSteps = 200;
  for (int number = 0; number < 150; ++number) {
    const int n = 1 + number % 2;
    Draw(n, &random, &c);
    std::vector<double> u(n), at(n);
    SolveBarrierQp(c.qp, c.wanted.data(), u.data());
    const double ours = Objective(c.qp, c.wanted, u.data());
    double best = HUGE_VAL;
    for (int k = 0; k < (n == 1 ? kSteps + 1 : (kSteps + 1) * (kSteps + 1)); ++k) {
      for (int i = 0; i < n; ++i) {
        const int step = i == 0 ? k % (kSteps + 1) : k / (kSteps + 1);
        at[i] = c.low[i] + (c.high[i] - c.low[i]) * step / kSteps;
      }
      best = std::min(best, Objective(c.qp, c.wanted, at.data()));
    }
    EXPECT_LE(ours, best + 1e-9) << number;
    // The nearest grid point is at most half a step away in every entry.
    double slack = 0;
    for (int i = 0; i < n; ++i) {
      const double half = (c.high[i] - c.low[i]) / kSteps / 2;
      slack += half * (c.qp.penalty * std::abs(c.L[i]) + 2 * std::abs(u[i] - c.wanted[i]) + half);
    }
    EXPECT_GE(ours, best - slack) << number;
  }
}

TEST(Golden, h_cbf_sac_cases_qp) {
  DATACOM_GOLDEN_FILES(paths, "h_cbf_sac_cases");
  for (const std::string& path : paths) {
    const nlohmann::json cases = testing::ReadGoldenJson(path).at("qp");
    ASSERT_FALSE(cases.empty());
    for (const nlohmann::json& c : cases) {
      const auto numbers = [&c](const char* name) { return c.at(name).get<std::vector<double>>(); };
      const std::vector<double> wanted = numbers("u_ref"), L = numbers("LGV"), low = numbers("low"),
                                high = numbers("high"), golden = numbers("u");
      BarrierQp qp{static_cast<int>(wanted.size()), c.at("V"), c.at("LfV"), L.data(), low.data(), high.data()};
      qp.decay = 1, qp.penalty = 1000;
      std::vector<double> u(wanted.size());
      const BarrierQpSolution found = SolveBarrierQp(qp, wanted.data(), u.data());
      const std::string where = path + " case " + c.at("id").dump();
      for (size_t i = 0; i < u.size(); ++i) EXPECT_NEAR(u[i], golden[i], 1e-8) << where;
      EXPECT_NEAR(found.relaxation, c.at("relaxation").get<double>(), 1e-8) << where;
      const double multiplier = c.at("multiplier");
      EXPECT_NEAR(found.multiplier, multiplier, 1e-6 * (1 + multiplier)) << where;
    }
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
