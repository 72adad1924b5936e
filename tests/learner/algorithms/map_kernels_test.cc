// Compares both implementations of the kernels of the safe map, the map with joined known rows and the barrier with
// common/safety, their definitions and finite differences.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/safety/safe_map.h"
#include "gtest/gtest.h"
#include "learner/algorithms/barrier_kernels.h"
#include "learner/algorithms/joined_map_kernels.h"
#include "learner/algorithms/safe_map_kernels.h"
#include "learner/algorithms/safe_map_row.h"
#include "learner/nn/kernels.h"
#include "learner/nn/named_stream.h"
#include "tests/learner/nn/kernels_testing.h"

namespace datacom::learner {
namespace {

INSTANTIATE_TEST_SUITE_P(All, EveryKernels, ::testing::Values("fused", "tensor"),
                         [](const auto& info) { return info.param; });

struct MapCase {
  int rows = 40, n = 3, q = 6, x = 2;
  Numbers k, J, f, G, x_dot, u;
};

MapCase RandomMap(double size) {
  MapCase c;
  c.k = Random(1, c.rows, size), c.J = Random(2, c.rows * (c.q + c.x), size), c.f = Random(3, c.rows * c.q);
  c.G = Random(4, c.rows * c.q * c.n), c.x_dot = Random(5, c.rows * c.x), c.u = Random(6, c.rows * c.n, 1.2);
  c.k[0] = -1e-6, c.k[1] = -20, c.k[2] = 0;
  for (int i = 0; i < c.q + c.x; ++i) c.J[3 * (c.q + c.x) + i] = 0;  // the action cannot influence row 3
  return c;
}

// The state's part of the map, and the action with log_pi (from 0) and record.
struct MapRun {
  DoubleView map;
  FloatView u;
  SafeMapOutput out;
};

// The views live in `kernels`.
MapRun RunMap(Kernels* kernels, const MapCase& c) {
  const auto doubles = [&](const Numbers& values, int rows, int cols) {
    const DoubleView view = kernels->NewDoubles(1, rows, cols);
    kernels->Upload(values.data(), view);
    return view;
  };
  MapRun run{kernels->NewDoubles(1, c.rows, SafeMapSize(c.n)),
             kernels->NewFloats(1, c.rows, c.n),
             {kernels->NewFloats(1, c.rows, c.n), kernels->NewFloats(1, c.rows, 1), kernels->NewDoubles(1, c.rows, 1)}};
  const std::vector<float> narrow(c.u.begin(), c.u.end());
  kernels->Upload(narrow.data(), run.u);
  const SafeMapInput in{doubles(c.k, c.rows, 1),
                        doubles(c.J, c.rows, c.q + c.x),
                        doubles(c.f, c.rows, c.q),
                        doubles(c.G, c.rows, c.q * c.n),
                        doubles(c.x_dot, c.rows, c.x),
                        doubles({25}, 1, 1),
                        doubles({3}, 1, 1),
                        doubles({-3}, 1, 1),
                        {}};
  kernels->Group<SafeMapKernels>()->State(in, run.map);
  kernels->Group<SafeMapKernels>()->Action(run.map, run.u, run.out);
  return run;
}

TEST_P(EveryKernels, SafeMapEqualsTheActorsMap) {
  for (double size : {0.1, 1.0, 30.0}) {
    const MapCase c = RandomMap(size);
    const MapRun run = RunMap(kernels_.get(), c);
    const Numbers states = Download(run.map), actions = Download(run.out.action), log_pi = Download(run.out.log_pi);
    SafeMap map(SafeMapDims{1, c.n, c.q, c.x});
    for (int r = 0; r < c.rows; ++r) {
      SafeMapTerms terms;
      terms.k = &c.k[r], terms.J_k = &c.J[r * (c.q + c.x)], terms.J_x = &c.J[r * (c.q + c.x) + c.q];
      terms.f = &c.f[r * c.q], terms.G = &c.G[r * c.q * c.n], terms.x_dot = &c.x_dot[r * c.x];
      map.Set(terms, SafeMapGains{25, 3});
      const double* const j = &states[r * SafeMapSize(c.n)];
      Numbers action(c.n);
      map.Apply(&c.u[r * c.n], action.data());
      for (int i = 0; i < c.n; ++i) {
        for (int k = 0; k < c.n; ++k) {
          EXPECT_NEAR((i == k ? 1 : 0) - j[i] * j[k] * j[c.n], map.basis()[i * c.n + k], 1e-12) << "row " << r;
        }
        const double offset = map.offset()[i];
        EXPECT_NEAR(-j[i] * j[c.n + 1], offset, 1e-12 * (1 + std::abs(offset))) << "row " << r << ", size " << size;
        EXPECT_NEAR(actions[r * c.n + i], action[i], 1e-6) << "row " << r << ", size " << size;
      }
      EXPECT_NEAR(-log_pi[r], std::max(map.log_det(), -3.0), 1e-6);
    }
  }
}

TEST_P(EveryKernels, SafeMapGradientMatchesFiniteDifferencesAtConstantScale) {
  const MapCase c = RandomMap(0.3);
  const int rows = c.rows, n = c.n;
  const MapRun run = RunMap(kernels_.get(), c);
  const Numbers states = Download(run.map), scales = Download(run.out.record), d_action = Random(7, rows * n);
  const FloatView d_u = kernels_->NewFloats(1, rows, n);
  kernels_->Group<SafeMapKernels>()->Gradient(run.map, run.out.record, run.u, Upload(d_action, 1, rows, n), d_u);
  const Numbers ours = Download(d_u);
  for (int r = 0; r < rows; ++r) {
    const double* const j = &states[r * SafeMapSize(n)];
    // <d_action, scale * a_raw(u)>, with a_raw at shifted u.
    const auto objective = [&](const Numbers& u) {
      double along = 0, sum = 0;
      for (int i = 0; i < n; ++i) along += j[i] * std::clamp(u[i], -1.0, 1.0);
      for (int i = 0; i < n; ++i) {
        const double raw = std::clamp(u[i], -1.0, 1.0) - j[i] * (along * j[n] + j[n + 1]);
        sum += d_action[r * n + i] * scales[r] * raw;
      }
      return sum;
    };
    const Numbers at(c.u.begin() + r * n, c.u.begin() + (r + 1) * n);
    const Numbers reference = Differences(objective, at);
    for (int i = 0; i < n; ++i) {
      if (std::abs(std::abs(at[i]) - 1) < 1e-4) continue;  // at the kink
      EXPECT_NEAR(ours[r * n + i], reference[i], 1e-4) << "row " << r;
    }
  }
}

// Definition of the barrier's loss (docs/algorithms.md 13.2), with a state-dependent G and a box that is not
// centred.
struct BarrierCase {
  int rows = 30, q = 4, n = 2;
  Numbers f, G, u, cost, half{0.75, 1.5}, centre{0.25, -1}, numbers{0.01, 100, 70, 3, 8, 0.6};

  double Loss(const Numbers& V, const Numbers& J) const {
    double safe = 0, unsafe = 0, relaxed = 0, safe_rows = 0, unsafe_rows = 0;
    for (int r = 0; r < rows; ++r) {
      if (cost[r] > 0) {
        ++unsafe_rows, unsafe += std::max(numbers[0] - V[r], 0.0);
      } else {
        ++safe_rows, safe += std::max(numbers[0] + V[r], 0.0);
      }
      double phi = numbers[5] * V[r];
      for (int d = 0; d < q; ++d) phi += J[r * q + d] * f[r * q + d];
      for (int i = 0; i < n; ++i) {
        double L = 0;
        for (int d = 0; d < q; ++d) L += J[r * q + d] * G[(r * q + d) * n + i];
        const double filtered = u[r * n + i] - numbers[4] / 2 * L;
        phi += L * std::min(std::max(filtered, centre[i] - half[i]), centre[i] + half[i]);
      }
      relaxed += std::max(phi, 0.0);
    }
    const auto mean = [](double sum, double count) { return count > 0 ? sum / count : 0; };
    return numbers[1] * mean(safe, safe_rows) + numbers[2] * mean(unsafe, unsafe_rows) + numbers[3] * relaxed / rows;
  }
};

TEST_P(EveryKernels, BarrierLossFollowsItsDefinitionAndItsGradientsMatchFiniteDifferences) {
  for (const double label : {0.0, 1.0, -1.0}) {  // 0: rows with both labels; else rows with one label
    BarrierCase c;
    c.f = Random(1, c.rows * c.q), c.G = Random(2, c.rows * c.q * c.n), c.u = Random(3, c.rows * c.n);
    c.cost = Random(4, c.rows);
    for (double& cost : c.cost) cost = label == 0 ? cost : label;
    const Numbers V = Random(5, c.rows), J = Random(6, c.rows * c.q, 0.5);
    const FloatView d_V = kernels_->NewFloats(1, c.rows, 1), d_J = kernels_->NewFloats(1, c.rows, c.q);
    const DoubleView loss = kernels_->NewDoubles(1, 1, 1);
    kernels_->Group<BarrierKernels>()->BarrierLoss({Upload(V, 1, c.rows, 1),
                                                    Upload(J, 1, c.rows, c.q),
                                                    UploadDoubles(c.f, 1, c.rows, c.q),
                                                    UploadDoubles(c.G, 1, c.rows, c.q * c.n),
                                                    Upload(c.u, 1, c.rows, c.n),
                                                    Upload(c.cost, 1, c.rows, 1),
                                                    {Upload(c.half, 1, 1, c.n), Upload(c.centre, 1, 1, c.n)},
                                                    UploadDoubles(c.numbers, 1, 1, BarrierInput::kNumbers)},
                                                   d_V, d_J, loss);
    EXPECT_NEAR(Download(loss)[0], c.Loss(V, J), 1e-5 * c.Loss(V, J));
    ExpectNear(Download(d_V), Differences([&](const Numbers& at) { return c.Loss(at, J); }, V, 1e-7), 1e-5, "for V");
    ExpectNear(Download(d_J), Differences([&](const Numbers& at) { return c.Loss(V, at); }, J, 1e-7), 1e-5, "for J");
  }
}

// Adds `known` records to the case's own rows, the last `equalities` of them equations. One map has slacks from 1e-5 to
// large ones.
struct JoinedCase {
  MapCase map;
  int known = 5, equalities = 0;
  Numbers records;
};

JoinedCase RandomJoined(int n, int known, int equalities = 0) {
  JoinedCase c;
  c.map.n = n, c.known = known, c.equalities = equalities;
  const int rows = c.map.rows;
  MapCase& m = c.map;
  m.k = Random(11, rows, 2), m.J = Random(12, rows * (m.q + m.x)), m.f = Random(13, rows * m.q);
  m.G = Random(14, rows * m.q * n), m.x_dot = Random(15, rows * m.x), m.u = Random(16, rows * n, 1.2);
  c.records = Random(17, rows * known * (n + 2));
  NamedStream stream(18);
  for (int i = 0; i < rows * known; ++i) {
    double* const record = &c.records[i * (n + 2)];
    const double kind = stream.Uniform();
    record[0] = kind < 0.4 ? -stream.Uniform(0.01, 3) : kind < 0.7 ? -stream.Uniform(0, 1e-4) : stream.Uniform(0, 1);
    const double size = kind > 0.95 ? 0 : std::pow(10, stream.Uniform(-3, 1));
    for (int j = 0; j < n; ++j) record[2 + j] *= size;
  }
  for (int j = 0; j < n; ++j) c.records[2 + j] = c.records[n + 2 + 2 + j];  // two parallel rows in the first state
  return c;
}

struct JoinedRun {
  DoubleView map;
  FloatView u;
  SafeMapOutput out;
};

JoinedRun RunJoined(Kernels* kernels, const JoinedCase& c) {
  const auto doubles = [&](const Numbers& values, int rows, int cols) {
    const DoubleView view = kernels->NewDoubles(1, rows, cols);
    kernels->Upload(values.data(), view);
    return view;
  };
  const MapCase& m = c.map;
  const SafeMapInput in{doubles(m.k, m.rows, 1),
                        doubles(m.J, m.rows, m.q + m.x),
                        doubles(m.f, m.rows, m.q),
                        doubles(m.G, m.rows, m.q * m.n),
                        doubles(m.x_dot, m.rows, m.x),
                        doubles({25}, 1, 1),
                        doubles({3}, 1, 1),
                        doubles({-3}, 1, 1),
                        doubles(c.records, m.rows, c.known * (m.n + 2)),
                        c.equalities};
  JoinedRun run;
  run.map = kernels->NewDoubles(1, m.rows, JoinedMapSize(m.n));
  run.u = kernels->NewFloats(1, m.rows, m.n);
  const std::vector<float> narrow(m.u.begin(), m.u.end());
  kernels->Upload(narrow.data(), run.u);
  run.out = {kernels->NewFloats(1, m.rows, m.n), kernels->NewFloats(1, m.rows, 1), kernels->NewDoubles(1, m.rows, 1)};
  kernels->Group<JoinedMapKernels>()->State(in, run.map);
  kernels->Group<JoinedMapKernels>()->Action(run.map, run.u, run.out);
  return run;
}

// The fused form calls the actor's code. The tensor form repeats its steps and rounds differently where slacks differ
// by 1e5: by 1e-10 in the basis, by more in an offset that the rescaling shrinks (1e-9 in the action).
TEST_P(EveryKernels, TheJoinedMapEqualsTheActorsMap) {
  const bool fused = GetParam() == "fused";
  for (const int n : {1, 2, 3, 5}) {
    for (const auto& [known, equalities] :
         std::vector<std::pair<int, int>>{{1, 0}, {2, 0}, {17, 0}, {1, 1}, {2, 1}, {5, 2}, {17, 1}}) {
      const JoinedCase c = RandomJoined(n, known, equalities);
      const MapCase& m = c.map;
      const JoinedRun run = RunJoined(kernels_.get(), c);
      const Numbers states = Download(run.map), actions = Download(run.out.action), log_pi = Download(run.out.log_pi);
      SafeMap map(SafeMapDims{1 + known, n, m.q, m.x, equalities});
      for (int r = 0; r < m.rows; ++r) {
        const double* const J = &m.J[r * (m.q + m.x)];
        map.Set({&m.k[r], J, J + m.q, &m.f[r * m.q], &m.G[r * m.q * n], &m.x_dot[r * m.x]},
                &c.records[r * known * (n + 2)], SafeMapGains{25, 3});
        const double* const state = &states[r * JoinedMapSize(n)];
        const std::string what = "row " + std::to_string(r) + ", n " + std::to_string(n) + ", known " +
                                 std::to_string(known) + ", equalities " + std::to_string(equalities);
        for (int i = 0; i < n * n; ++i) EXPECT_NEAR(state[i], map.basis()[i], fused ? 1e-12 : 1e-9) << what;
        for (int i = 0; i < n; ++i) {
          const double offset = map.offset()[i];
          EXPECT_NEAR(state[n * n + i], offset, (fused ? 1e-12 : 1e-7) * (1 + std::abs(offset))) << what;
        }
        for (int i = 0; i < n; ++i) {
          const double fixed = map.fixed()[i];
          EXPECT_NEAR(state[n * n + n + i], fixed, (fused ? 1e-12 : 1e-7) * (1 + std::abs(fixed))) << what;
        }
        EXPECT_NEAR(state[n * n + 2 * n], std::max(map.log_det(), -3.0), fused ? 1e-12 : 1e-6) << what;
        Numbers action(n);
        map.Apply(&m.u[r * n], action.data());
        for (int i = 0; i < n; ++i) EXPECT_NEAR(actions[r * n + i], action[i], 1e-6) << what;
        EXPECT_NEAR(-log_pi[r], std::max(map.log_det(), -3.0), 1e-6) << what;
      }
    }
  }
}

TEST_P(EveryKernels, TheJoinedMapsGradientMatchesFiniteDifferencesAtConstantScale) {
  const JoinedCase c = RandomJoined(3, 4, 1);
  const int rows = c.map.rows, n = 3;
  const JoinedRun run = RunJoined(kernels_.get(), c);
  const Numbers d_action = Random(7, rows * n);
  const FloatView d_u = kernels_->NewFloats(1, rows, n);
  kernels_->Group<JoinedMapKernels>()->Gradient(run.map, run.out.record, run.u, Upload(d_action, 1, rows, n), d_u);
  const Numbers ours = Download(d_u), states = Download(run.map), scales = Download(run.out.record);
  for (int r = 0; r < rows; ++r) {
    const double* const state = &states[r * JoinedMapSize(n)];
    const auto objective = [&](const Numbers& u) {
      Numbers action(n);
      for (int i = 0; i < n; ++i) action[i] = state[n * n + i];
      double sum = 0;
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) action[i] += state[i * n + j] * std::clamp(u[j], -1.0, 1.0);
        sum += d_action[r * n + i] * scales[r] * action[i];
      }
      return sum;
    };
    const Numbers at(c.map.u.begin() + r * n, c.map.u.begin() + (r + 1) * n);
    const Numbers reference = Differences(objective, at);
    for (int i = 0; i < n; ++i) {
      if (std::abs(std::abs(at[i]) - 1) < 1e-4) continue;  // at the kink
      EXPECT_NEAR(ours[r * n + i], reference[i], 1e-4) << "row " << r;
    }
  }
}

TEST_P(EveryKernels, ANaNReachesOnlyTheJoinedActionOfItsRow) {
  JoinedCase c = RandomJoined(3, 4);
  c.records[2 * 4 * 5] = std::nan("");  // k of row 2's first record
  const Numbers actions = Download(RunJoined(kernels_.get(), c).out.action);
  for (int i = 0; i < c.map.rows * 3; ++i) EXPECT_EQ(std::isnan(actions[i]), i / 3 == 2) << "row " << i / 3;
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
