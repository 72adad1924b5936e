// Tests the map of the analytic baselines against the reference's numbers on the planar arm, and term by term on simple
// constraints.
#include "common/safety/known_rows.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/tasks/air_hockey/arm.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"

namespace datacom {
namespace {

constexpr SafeMapGains kPublished{25, 3};
constexpr ControlAffineDims kArm{0, 3, 6, 0}, kOneJoint{0, 1, 2, 0};

// The model at q = [positions, velocities] where the action is the acceleration.
struct Accelerated {
  Accelerated(const double* at, int n) : q(at, at + 2 * n), f(2 * n), G(2 * n * n) {
    for (int i = 0; i < n; ++i) {
      f[i] = at[n + i];
      G[(n + i) * n + i] = 1;
    }
  }
  KnownRowsInput input() const { return {q.data(), nullptr, f.data(), G.data(), nullptr}; }
  std::vector<double> q, f, G;
};

TEST(Golden, table_planar_atacom_baseline) {
  DATACOM_GOLDEN_FILES(files, "table_planar_atacom_baseline");
  const auto constraints = std::make_shared<air_hockey::Constraints>();
  AnalyticMap invariant(constraints, constraints->viability_gains(), kArm);
  AnalyticMap plain(constraints, std::vector<double>(constraints->count(), 0.0), kArm);
  for (const std::string& file : files) {
    const testing::GoldenTable table = testing::ReadGoldenCsv(file);
    for (size_t i = 0; i < table.rows.size(); ++i) {
      double q[6], alpha[3], action[3];
      for (int j = 0; j < 6; ++j) q[j] = table.value(i, absl::StrCat(j < 3 ? "q" : "dq", j % 3));
      for (int j = 0; j < 3; ++j) alpha[j] = table.value(i, absl::StrCat("alpha", j));
      for (const auto& [map, name] : {std::pair{&invariant, "uFI"}, std::pair{&plain, "unFI"}}) {
        map->Set(Accelerated(q, 3).input(), kPublished);
        map->Apply(alpha, action);
        for (int j = 0; j < 3; ++j) {
          // The reference's finite difference has an error of 1e-7 of the drift.
          const double want = table.value(i, absl::StrCat(name, j));
          EXPECT_NEAR(action[j], want, 1e-6 * (1 + std::abs(want))) << file << " row " << i << " " << name << j;
        }
      }
    }
  }
}

// One joint with a wall for the position, k0 = p^2 - 1, and a velocity limit, k1 = v - 2.
class OneJoint : public KnownConstraints {
 public:
  OneJoint() {
    Add("wall", "wall", 0.5);
    Add("speed", "speed", 0);
  }
  void Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const override {
    const double* const q = at.q;
    if (out.k != nullptr) {
      out.k[0] = q[0] * q[0] - 1;
      out.k[1] = q[1] - 2;
    }
    if (out.J_q == nullptr) return;
    const double rows[4] = {2 * q[0], 0, 0, 1};
    std::copy_n(rows, 4, out.J_q);
  }
};

// The reduced terms of docs/safe_map.md 3.4, written out for OneJoint.
void ExpectMap(double p, double v, bool invariant) {
  const auto constraints = std::make_shared<OneJoint>();
  AnalyticMap map(constraints, invariant ? constraints->viability_gains() : std::vector<double>{0, 0}, kOneJoint);
  const double q[2] = {p, v};
  map.Set(Accelerated(q, 1).input(), kPublished);
  const double k[2] = {p * p - 1 + (invariant ? 0.5 * 2 * p * v : 0), v - 2};
  const double J_G[2] = {invariant ? 2 * p : 0, 1};
  const double drift[2] = {std::max(2 * p * v + (invariant ? 2 * v * v : 0), 0.0), 0};
  SafeMap expected({2, 1, 2, 0});
  expected.Set(SafeMapReduced{k, J_G, drift}, kPublished);
  for (const double u : {-3.0, -0.4, 0.0, 1.0}) {
    double got = 0, want = 0;
    map.Apply(&u, &got);
    expected.ApplyUnscaled(&u, &want);
    EXPECT_NEAR(got, want, 1e-9 * (1 + std::abs(want))) << "p " << p << " v " << v << " u " << u;
  }
}

TEST(AnalyticMap, FormsTheTermsOfForwardInvariantAndPlainConstraints) {
  for (const double p : {-1.1, -0.5, 0.0, 0.3, 0.99}) {
    for (const double v : {-1.5, 0.0, 0.7, 1.99, 2.5}) {
      ExpectMap(p, v, true);
      ExpectMap(p, v, false);
    }
  }
}

// A force of u on a mass of 4 kg with a spring: v_dot = -2 p + u / 4.
TEST(AnalyticMap, ForcesReachTheRowsThroughTheModelsDriftAndGain) {
  const auto constraints = std::make_shared<OneJoint>();
  AnalyticMap map(constraints, constraints->viability_gains(), kOneJoint);
  const double p = 0.9, v = 0.5, q[2] = {p, v}, f[2] = {v, -2 * p}, G[2] = {0, 0.25};
  map.Set({q, nullptr, f, G, nullptr}, kPublished);
  const double k[2] = {p * p - 1 + 0.5 * 2 * p * v, v - 2}, J_G[2] = {2 * p * 0.25, 0.25};
  const double drift[2] = {std::max(2 * p * v + 2 * v * v + 2 * p * -2 * p, 0.0), 0};
  SafeMap expected({2, 1, 2, 0});
  expected.Set(SafeMapReduced{k, J_G, drift}, kPublished);
  for (const double u : {-0.4, 0.0, 1.0}) {
    double got = 0, want = 0;
    map.Apply(&u, &got);
    expected.ApplyUnscaled(&u, &want);
    EXPECT_NEAR(got, want, 1e-9 * (1 + std::abs(want))) << "u " << u;
  }
}

TEST(AnalyticMap, BrakesBeforeTheWallWhereThePlainConstraintDoesNot) {
  const auto constraints = std::make_shared<OneJoint>();
  const double q[2] = {0.9, 1.0}, push = 1;  // k0 = -0.19, moving towards the wall
  double invariant = 0, plain = 0;
  AnalyticMap braking(constraints, constraints->viability_gains(), kOneJoint), blind(constraints, {0, 0}, kOneJoint);
  const Accelerated at(q, 1);
  braking.Set(at.input(), kPublished);
  braking.Apply(&push, &invariant);
  blind.Set(at.input(), kPublished);
  blind.Apply(&push, &plain);
  EXPECT_LT(invariant, -1);
  EXPECT_GT(plain, 0.9);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
