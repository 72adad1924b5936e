// Tests the safe map against the reference's numbers, against a direct implementation by QR and eigenvalues, and at
// edge cases.
#include "common/safety/safe_map.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "Eigen/Dense"
#include "common/base/random.h"
#include "gtest/gtest.h"
#include "tests/testing/golden.h"

namespace datacom {
namespace {

using nlohmann::json;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vec = Eigen::VectorXd;

std::vector<double> Flat(const json& value) {
  std::vector<double> out;
  if (!value.is_array()) return {value.get<double>()};
  for (const json& part : value) {
    for (const double v : Flat(part)) out.push_back(v);
  }
  return out;
}

struct Problem {
  int K = 1, n = 1;
  std::vector<double> k, J_G, drift;
  SafeMapGains gains;
  SafeMapReduced reduced() const { return {k.data(), J_G.data(), drift.data()}; }
};

// docs/safe_map.md 2.1 and 2.2 implemented directly in extended precision: full QR null basis, Procrustes
// rotation, pseudo-inverse by a complete decomposition.
using Wide = long double;
using WideMatrix = Eigen::Matrix<Wide, Eigen::Dynamic, Eigen::Dynamic>;
using WideVec = Eigen::Matrix<Wide, Eigen::Dynamic, 1>;
struct Literal {
  Eigen::MatrixXd B_top;
  Vec offset;
  double log_det = 0;
};

Literal LiteralMap(const Problem& p) {
  const int K = p.K, n = p.n;
  WideMatrix J_u = WideMatrix::Zero(K, n + K);
  WideVec r(K);
  for (int i = 0; i < K; ++i) {
    const Wide mu = std::max(-p.k[i], 1e-5);
    for (int j = 0; j < n; ++j) J_u(i, j) = p.J_G[i * n + j];
    J_u(i, n + i) = std::min<Wide>(std::expm1(p.gains.beta * mu), 1e5L - 1);
    r[i] = p.drift[i] + p.gains.lambda * (p.k[i] + mu);
  }
  const Eigen::HouseholderQR<WideMatrix> qr(J_u.transpose());
  const WideMatrix Q = qr.householderQ();
  const WideMatrix U = Q.rightCols(n);
  // The matrix is square: without a preconditioner there is less to compile.
  const Eigen::JacobiSVD<WideMatrix, Eigen::NoQRPreconditioner> svd(U.topRows(n).transpose(),
                                                                    Eigen::ComputeFullU | Eigen::ComputeFullV);
  const WideMatrix B_top = (U * svd.matrixU() * svd.matrixV().transpose()).topRows(n);
  Literal out;
  out.B_top = B_top.cast<double>();
  out.offset = (-J_u.completeOrthogonalDecomposition().solve(r)).head(n).cast<double>();
  const WideMatrix regularised = B_top + static_cast<Wide>(1e-4f) * WideMatrix::Identity(n, n);
  out.log_det = static_cast<double>(std::log(std::abs(regularised.determinant())));
  return out;
}

Problem RandomProblem(int K, int n, RandomStream* random) {
  Problem p;
  p.K = K;
  p.n = n;
  p.gains = {random->Uniform(1, 60), random->Uniform(0.5, 4)};
  for (int i = 0; i < K; ++i) {
    const double kind = random->Uniform();
    p.k.push_back(kind < 0.5   ? -random->Uniform(0.01, 3)
                  : kind < 0.7 ? -random->Uniform(0, 1e-3)
                               : random->Uniform(0, 2));
    const double size = std::pow(10, random->Uniform(-3, 1));
    for (int j = 0; j < n; ++j) p.J_G.push_back(kind > 0.95 ? 0 : size * random->Normal());
    p.drift.push_back(random->Normal());
  }
  return p;
}

void ExpectNear(const double* got, const std::vector<double>& want, double tolerance, const std::string& what) {
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << what << "[" << i << "]";
  }
}

TEST(Golden, a_atacom_k1) {
  DATACOM_GOLDEN_FILES(files, "a_atacom_k1");
  int cases = 0;
  for (const std::string& file : files) {
    const json document = testing::ReadGoldenJson(file);
    for (const json& c : document.at("cases")) {
      const std::string what = file + " case " + c["id"].dump() + " " + c["kind"].get<std::string>();
      const int n = c["n"], q = c["dim_q"], x = c["dim_x"];
      const double k = c["cons"];
      const auto J_k = Flat(c["J_k"]), J_x = Flat(c["J_x"]), f = Flat(c["f"]), G = Flat(c["G"]),
                 x_dot = Flat(c["x_dot"]);
      SafeMap map({1, n, q, x});
      map.Set(SafeMapTerms{&k, J_k.data(), J_x.data(), f.data(), G.data(), x_dot.data()}, {c["lam"], c["beta"]});
      std::vector<double> action(n), raw(n);
      const double scale = map.Apply(Flat(c["alpha"]).data(), action.data());
      map.ApplyUnscaled(Flat(c["alpha"]).data(), raw.data());
      EXPECT_NEAR(SafeMapSlackSlope(SafeMapSlack(k), c["beta"]), c["slack_jac"].get<double>(),
                  1e-9 * c["slack_jac"].get<double>())
          << what;
      ExpectNear(action.data(), Flat(c["action"]), 1e-12, what + " action");
      ExpectNear(raw.data(), Flat(c["action_before_rescale"]), 1e-12, what + " action before rescale");
      ExpectNear(&scale, {c["scale"].get<double>()}, 1e-12, what + " scale");
      EXPECT_NEAR(map.log_det(), c["log_det"].get<double>(), 1e-9) << what;
      const auto derivative = Flat(c["d_action_d_alpha"]), alpha = Flat(c["alpha"]);
      for (int i = 0; i < n * n; ++i) {
        const double pass = std::abs(alpha[i % n]) <= 1 ? 1 : 0;
        EXPECT_NEAR(scale * map.basis()[i] * pass, derivative[i], 1e-12) << what << " derivative " << i;
      }
      ++cases;
    }
  }
  std::printf("a_atacom_k1: %d cases\n", cases);
  EXPECT_GT(cases, 0);
}

TEST(Golden, b_atacom_general_k_mapping) {
  DATACOM_GOLDEN_FILES(files, "b_atacom_general_k");
  for (const std::string& file : files) {
    const json document = testing::ReadGoldenJson(file);
    ASSERT_FALSE(document.at("datacom_mapping").empty()) << file;
    for (const json& c : document.at("datacom_mapping")) {
      const std::string what = file + " mapping " + c["id"].dump();
      const int K = c["K"], n = c["n"];
      const auto k = Flat(c["cons"]), J_k = Flat(c["J_k"]), J_x = Flat(c["J_x"]), f = Flat(c["f"]), G = Flat(c["G"]),
                 x_dot = Flat(c["x_dot"]);
      SafeMap map({K, n, c["dim_q"], c["dim_x"]});
      map.Set(SafeMapTerms{k.data(), J_k.data(), J_x.data(), f.data(), G.data(), x_dot.data()}, {c["lam"], c["beta"]});
      std::vector<double> action(n), raw(n);
      map.Apply(Flat(c["alpha"]).data(), action.data());
      map.ApplyUnscaled(Flat(c["alpha"]).data(), raw.data());
      ExpectNear(raw.data(), Flat(c["action_before_rescale"]), 1e-9, what + " action before rescale");
      ExpectNear(action.data(), Flat(c["action"]), 1e-9, what + " action");
      auto B_top = Flat(c["B_u"]);
      B_top.resize(n * n);
      ExpectNear(map.basis(), B_top, 1e-10, what + " basis");
      EXPECT_NEAR(map.log_det(), c["log_det"].get<double>(), 1e-9) << what;
    }
  }
}

// The ATACOM baselines' inputs to the map (docs/safe_map.md 3.4) for the test constraints of
// docs/developing.md: k_i = c0_i + b_i.z + z' C_i z / 2, J_i = b_i + C_i z.
Problem Baseline(const json& c, bool viability) {
  Problem p;
  p.K = c["K_total"];
  p.n = c["n"];
  p.gains = {c["lam"], c["beta"]};
  const auto state = Flat(c["state"]);
  const Vec z = Eigen::Map<const Vec>(state.data(), 6);
  Vec z_dot = Vec::Zero(6);
  z_dot.head(3) = z.tail(3);
  for (int i = 0; i < p.K; ++i) {
    const auto b_values = Flat(c["b"][i]), C_values = Flat(c["C"][i]);
    const Vec b = Eigen::Map<const Vec>(b_values.data(), 6);
    const Matrix C = Eigen::Map<const Matrix>(C_values.data(), 6, 6);
    const Vec J = b + C * z, J_dot = C * z_dot;
    const double gain = c["K"][i], along = J.head(3).dot(z.tail(3));
    const bool position = gain > 0;
    double value = c["c0"][i].get<double>() + b.dot(z) + 0.5 * z.dot(C * z), drift = along;
    Vec row = J.tail(3);
    if (viability) {
      if (position) {
        value += gain * along;
        row = J.head(3);
      }
      drift = position ? along + J_dot.head(3).dot(z.tail(3)) : 0.0;
    }
    p.k.push_back(value);
    p.drift.push_back(std::max(drift, 0.0));
    p.J_G.insert(p.J_G.end(), row.data(), row.data() + 3);
  }
  return p;
}

TEST(Golden, b_atacom_general_k_baselines) {
  DATACOM_GOLDEN_FILES(files, "b_atacom_general_k");
  for (const std::string& file : files) {
    const json document = testing::ReadGoldenJson(file);
    ASSERT_FALSE(document.at("baseline_atacom").empty()) << file;
    for (const json& c : document.at("baseline_atacom")) {
      for (const bool viability : {true, false}) {
        const json& want = c[viability ? "FI" : "nFI"];
        const std::string what = file + (viability ? " FI " : " nFI ") + c["id"].dump();
        const double tolerance = viability ? 1e-6 : 1e-8;
        const Problem p = Baseline(c, viability);
        ExpectNear(p.k.data(), Flat(want["constraint"]), tolerance, what + " constraint");
        ExpectNear(p.drift.data(), Flat(want["drift_truncated"]), tolerance, what + " drift");
        SafeMap map({p.K, p.n, 0, 0});
        map.Set(p.reduced(), p.gains);
        std::vector<double> action(p.n);
        map.ApplyUnscaled(Flat(c["alpha"]).data(), action.data());
        ExpectNear(action.data(), Flat(want["action"]), tolerance, what + " action");
      }
    }
  }
}

TEST(SafeMap, EqualsTheDirectQrAndProcrustesMap) {
  RandomStream random(StreamKey("test.literal", {1}));
  for (int n = 1; n <= 8; ++n) {
    for (const int K : {1, 2, 3, 5, 17}) {
      for (int i = 0; i < 20; ++i) {
        const Problem p = RandomProblem(K, n, &random);
        const Literal want = LiteralMap(p);
        SafeMap map({K, n, 0, 0});
        map.Set(p.reduced(), p.gains);
        const Eigen::Map<const Matrix> basis(map.basis(), n, n);
        const Eigen::Map<const Vec> offset(map.offset(), n);
        EXPECT_LT((basis - want.B_top).cwiseAbs().maxCoeff(), 1e-9) << "K " << K << " n " << n;
        EXPECT_LT((offset - want.offset).cwiseAbs().maxCoeff(), 1e-7 * (1 + want.offset.cwiseAbs().maxCoeff()))
            << "K " << K << " n " << n;
        EXPECT_NEAR(map.log_det(), want.log_det, 1e-8) << "K " << K << " n " << n;
      }
    }
  }
}

TEST(SafeMap, BothFormsAgreeForOneConstraintAndInDegenerateCases) {
  RandomStream random(StreamKey("test.forms", {1}));
  for (int i = 0; i < 4000; ++i) {
    const int n = 1 + i % 4;
    Problem p = RandomProblem(1, n, &random);
    if (i % 5 == 0) p.k[0] = i % 2 == 0 ? 0.0 : -1e-5;  // on the boundary, at the smallest slack
    if (i % 7 == 0) p.J_G.assign(n, 0.0);               // no influence
    if (i % 11 == 0) p.k[0] = -50;                      // slope at its cap
    if (i % 13 == 0)
      for (double& g : p.J_G) g *= 1e4;  // much larger than any slack
    SafeMap one({1, n, 0, 0}), any({1, n, 0, 0});
    one.Set(p.reduced(), p.gains);
    any.SetBySingularValues(p.reduced(), p.gains);
    for (int j = 0; j < n * n; ++j) ASSERT_NEAR(one.basis()[j], any.basis()[j], 1e-9) << i;
    double largest = 1;
    for (int j = 0; j < n; ++j) largest = std::max(largest, std::abs(one.offset()[j]));
    for (int j = 0; j < n; ++j) ASSERT_NEAR(one.offset()[j], any.offset()[j], 1e-9 * largest) << i;
    ASSERT_NEAR(one.log_det(), any.log_det(), 1e-9) << i;
  }
}

TEST(SafeMap, BasisIsTheDerivativeOfTheActionBeforeTheRescale) {
  RandomStream random(StreamKey("test.derivative", {1}));
  for (int i = 0; i < 200; ++i) {
    const int n = 1 + i % 3, K = 1 + i % 4;
    const Problem p = RandomProblem(K, n, &random);
    SafeMap map({K, n, 0, 0});
    map.Set(p.reduced(), p.gains);
    std::vector<double> u(n), low(n), high(n);
    for (double& v : u) v = random.Uniform(-0.9, 0.9);
    for (int j = 0; j < n; ++j) {
      const double step = 1e-3;  // the map is affine in u: any step is exact
      std::vector<double> shifted = u;
      shifted[j] += step;
      map.ApplyUnscaled(shifted.data(), high.data());
      shifted[j] -= 2 * step;
      map.ApplyUnscaled(shifted.data(), low.data());
      for (int a = 0; a < n; ++a) {
        const double size = 1 + std::abs(high[a]);
        EXPECT_NEAR((high[a] - low[a]) / (2 * step), map.basis()[a * n + j], 1e-9 * size);
      }
    }
  }
}

TEST(SafeMap, TermsFormTheReducedInputs) {
  // Drift of the robot that helps is dropped; motion of uncontrolled objects is kept.
  const double k = -0.3, J_k[2] = {1, 2}, J_x[1] = {3}, f[2] = {-1, 0}, G[2] = {0.5, 0.25}, x_dot[1] = {-2};
  SafeMap terms({1, 1, 2, 1}), reduced({1, 1, 0, 0});
  terms.Set(SafeMapTerms{&k, J_k, J_x, f, G, x_dot}, {10, 1});
  const double J_G = 1.0, drift = -6.0;
  reduced.Set(SafeMapReduced{&k, &J_G, &drift}, {10, 1});
  EXPECT_DOUBLE_EQ(terms.basis()[0], reduced.basis()[0]);
  EXPECT_DOUBLE_EQ(terms.offset()[0], reduced.offset()[0]);
  EXPECT_GT(terms.offset()[0], 0) << "an object that moves away leaves room";
}

TEST(SafeMap, WithoutInfluenceTheActionIsTheClippedTangentAction) {
  const double k = 3, J_G[2] = {0, 0}, drift = 7, u[2] = {0.4, -1.7};
  SafeMap map({1, 2, 0, 0});
  map.Set(SafeMapReduced{&k, J_G, &drift}, {50, 1});
  double action[2];
  EXPECT_EQ(map.Apply(u, action), 1.0);
  EXPECT_EQ(action[0], 0.4);
  EXPECT_EQ(action[1], -1.0);
  EXPECT_NEAR(map.log_det(), 2 * std::log1p(kLogDetRegularisation), 1e-15);
}

TEST(SafeMap, AViolatedConstraintPushesAgainstItsGradientWithinTheBox) {
  const double k = 0.5, J_G[2] = {3, -4}, drift = 0, u[2] = {1, 1};
  SafeMap map({1, 2, 0, 0});
  map.Set(SafeMapReduced{&k, J_G, &drift}, {50, 1});
  double action[2];
  EXPECT_LT(map.Apply(u, action), 1.0);
  EXPECT_LT(action[0] * J_G[0] + action[1] * J_G[1], 0);
  EXPECT_DOUBLE_EQ(std::max(std::abs(action[0]), std::abs(action[1])), 1.0);
}

TEST(SafeMap, NaNReachesTheAction) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double k[2] = {nan, -1}, J_G[4] = {1, 0, 0, 1}, drift[2] = {0, 0}, u[2] = {0, 0};
  for (const int K : {1, 2}) {
    SafeMap map({K, 2, 0, 0});
    map.Set(SafeMapReduced{k, J_G, drift}, {50, 1});
    double action[2];
    map.Apply(u, action);
    EXPECT_TRUE(std::isnan(action[0])) << K;
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
