// The kernels of PPOLag and RCPO against their definitions and finite differences in float64, for both backends.
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "learner/algorithms/observation_kernels.h"
#include "learner/algorithms/on_policy_kernels.h"
#include "tests/learner/algorithms/on_policy_testing.h"

namespace datacom::learner {
namespace {

INSTANTIATE_TEST_SUITE_P(All, EveryKernels, ::testing::Values("fused", "tensor"),
                         [](const auto& info) { return info.param; });

const double kInfinity = std::numeric_limits<double>::infinity();

Numbers Member(const Numbers& all, int members, int member) {
  const size_t size = all.size() / members;
  return Numbers(all.begin() + member * size, all.begin() + (member + 1) * size);
}

TEST_P(EveryKernels, AdvantagesAreDiscountedSumsUntilThePathEnds) {
  const int rows = 37, members = 2;
  const std::vector<std::string> ends{"t....h.tt......h......c......t......c",
                                      ".....................................c"};
  const Numbers signal = Random(1, members * rows), value = Random(2, members * rows),
                final = Random(3, members * rows);
  const Numbers lambda{0.95, 0.3};
  Numbers absorbing, path_end;
  for (int m = 0; m < members; ++m) {
    for (int r = 0; r < rows; ++r) {
      absorbing.push_back(ends[m][r] == 't');
      path_end.push_back(m == 0 && ends[m][r] != '.');  // the last row of member 1 counts as an end all the same
    }
  }
  const auto column = [&](const Numbers& all) { return Upload(all, members, rows, 1); };
  for (const bool cost : {false, true}) {
    const FloatView advantage = column(signal), target = column(signal);
    kernels_->Group<OnPolicyKernels>()->Advantages(
        {column(signal), column(absorbing), column(path_end), column(value), column(final)}, cost ? 0 : -kInfinity,
        0.99, UploadDoubles(lambda, members, 1, 1), advantage, target);
    for (int m = 0; m < members; ++m) {
      std::string kinds = ends[m].substr(0, rows);
      kinds[rows - 1] = 'c';
      const Paths paths{Member(signal, members, m), Member(value, members, m), Member(final, members, m), kinds};
      Numbers wanted = LiteralAdvantages(paths, cost, 0.99, lambda[m]);
      ExpectNear(Member(Download(advantage), members, m), wanted, 1e-6, cost ? "cost" : "reward");
      for (int r = 0; r < rows; ++r) wanted[r] += paths.value[r];
      ExpectNear(Member(Download(target), members, m), wanted, 1e-6, "target");
    }
  }
}

TEST_P(EveryKernels, NormaliseClampsAndGivesNoNumberForOneThatIsNotFinite) {
  const FloatView out = kernels_->NewFloats(1, 3, 2);
  kernels_->Group<ObservationKernels>()->Normalise(Upload({1, 5, 100, -100, kInfinity, NAN}, 1, 3, 2),
                                                   Upload({2, 1}, 1, 1, 2), Upload({0.5, 8}, 1, 1, 2), 5, out);
  const Numbers values = Download(out);
  EXPECT_EQ(Numbers(values.begin(), values.begin() + 4), (Numbers{-2, 0.5, 5, -5}));
  EXPECT_TRUE(std::isnan(values[4]));
  EXPECT_TRUE(std::isnan(values[5]));
}

TEST_P(EveryKernels, ObservationStatisticsAreThoseOfAllRowsOfActiveMembers) {
  const int members = 2, rows = 23, obs = 3;
  const DoubleView active = UploadDoubles({1, 0}, members, 1, 1);
  const ObservationStatistics statistics{kernels_->NewDoubles(members, 1, 1), kernels_->NewDoubles(members, 1, obs),
                                         kernels_->NewDoubles(members, 1, obs), kernels_->NewDoubles(members, 1, obs)};
  const Numbers start{7, 8, 9, 7, 8, 9};
  const FloatView mean = Upload(start, members, 1, obs), deviation = Upload(start, members, 1, obs);
  Numbers all;
  for (int epoch = 0; epoch < 3; ++epoch) {
    Numbers raw = Random(epoch, members * rows * obs, 3);
    for (size_t i = 0; i < raw.size(); i += obs) raw[i] = 1000 + 0.001 * raw[i];  // below the least deviation
    const Numbers narrow(raw.begin(), raw.end());
    kernels_->Group<ObservationKernels>()->AddObservations(Upload(raw, members, rows, obs), active, {0.01, kNoLimit},
                                                           statistics, mean, deviation);
    for (int i = 0; i < rows * obs; ++i) all.push_back(static_cast<float>(raw[i]));
    for (int c = 0; c < obs; ++c) {
      double sum = 0, squares = 0;
      const size_t count = all.size() / obs;
      for (size_t r = 0; r < count; ++r) sum += all[r * obs + c];
      for (size_t r = 0; r < count; ++r) squares += std::pow(all[r * obs + c] - sum / count, 2);
      EXPECT_NEAR(Download(mean)[c], sum / count, 1e-6 * std::abs(sum / count) + 1e-7);
      EXPECT_NEAR(Download(deviation)[c], std::max(std::sqrt(squares / (count - 1)), 0.01), 1e-6);
    }
    EXPECT_EQ(Member(Download(mean), members, 1), (Numbers{7, 8, 9})) << "an inactive member keeps its own";
    EXPECT_EQ(Member(Download(statistics.count), members, 1), (Numbers{0}));
  }
}

TEST_P(EveryKernels, ADeviationIsAtLeastAShareOfTheLargestDeviationSoFar) {
  const ObservationStatistics statistics{kernels_->NewDoubles(1, 1, 1), kernels_->NewDoubles(1, 1, 2),
                                         kernels_->NewDoubles(1, 1, 2), kernels_->NewDoubles(1, 1, 2)};
  const FloatView mean = Upload({0, 0}, 1, 1, 2), deviation = Upload({1, 1}, 1, 1, 2);
  Numbers raw(200, 0.0);  // one of 100 rows moves the first entry by 8, the second is 1 and -1 in turn
  for (size_t r = 0; r < 100; ++r) raw[2 * r + 1] = r % 2 == 0 ? 1 : -1;
  raw[0] = 8;
  const auto add = [&] {
    kernels_->Group<ObservationKernels>()->AddObservations(Upload(raw, 1, 100, 2), UploadDoubles({1}, 1, 1, 1),
                                                           {0.01, 4}, statistics, mean, deviation);
  };
  add();
  EXPECT_NEAR(Download(mean)[0], 0.08, 1e-7);
  EXPECT_NEAR(Download(deviation)[0], 7.92 / 4, 1e-6) << "the standard deviation is 0.8";
  EXPECT_NEAR(Download(deviation)[1], std::sqrt(100.0 / 99), 1e-6);
  raw[0] = 0;
  add();
  EXPECT_NEAR(Download(deviation)[0], 7.92 / 4, 1e-6) << "the largest deviation is kept";
}

TEST_P(EveryKernels, OneObservationGivesNoDeviation) {
  const ObservationStatistics statistics{kernels_->NewDoubles(1, 1, 1), kernels_->NewDoubles(1, 1, 1),
                                         kernels_->NewDoubles(1, 1, 1), kernels_->NewDoubles(1, 1, 1)};
  const FloatView mean = Upload({0}, 1, 1, 1), deviation = Upload({1}, 1, 1, 1);
  const auto add = [&](double raw) {
    kernels_->Group<ObservationKernels>()->AddObservations(Upload({raw}, 1, 1, 1), UploadDoubles({1}, 1, 1, 1),
                                                           {0.01, kNoLimit}, statistics, mean, deviation);
  };
  add(3);
  EXPECT_EQ(Download(mean), (Numbers{0}));
  EXPECT_EQ(Download(deviation), (Numbers{1}));
  add(5);
  EXPECT_EQ(Download(mean), (Numbers{4}));
  EXPECT_NEAR(Download(deviation)[0], std::sqrt(2.0), 1e-6);
}

TEST_P(EveryKernels, AdvantagesAreStandardisedCentredAndPriced) {
  const FloatView reward = Upload({1, 2, 3, 6}, 1, 4, 1), cost = Upload({1, 2, 3, 6}, 1, 4, 1);
  const FloatView out = kernels_->NewFloats(1, 4, 1);
  OnPolicyKernels* const group = kernels_->Group<OnPolicyKernels>();
  group->Standardise(reward);
  group->Centre(cost);
  const double width = std::sqrt(3.5);
  ExpectNear(Download(reward), {-2 / width, -1 / width, 0, 3 / width}, 1e-6, "reward");
  EXPECT_EQ(Download(cost), (Numbers{-2, -1, 0, 3}));
  group->PriceAdvantages(reward, cost, UploadDoubles({0.25}, 1, 1, 1), out);
  ExpectNear(Download(out), {-1.6 / width + 0.4, -0.8 / width + 0.2, 0, 2.4 / width - 0.6}, 1e-6, "both");
  const FloatView same = Upload({4, 4, 4}, 1, 3, 1);
  group->Standardise(same);
  EXPECT_EQ(Download(same), (Numbers{0, 0, 0}));
}

TEST_P(EveryKernels, GatherTakesRowsOfEachMember) {
  const FloatView rows = Upload({0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121}, 2, 3, 2);
  const FloatView out = kernels_->NewFloats(2, 2, 2);
  kernels_->Group<OnPolicyKernels>()->Gather(rows, UploadDoubles({2, 0, 1, 2}, 2, 2, 1), out);
  EXPECT_EQ(Download(out), (Numbers{20, 21, 0, 1, 110, 111, 120, 121}));
}

TEST_P(EveryKernels, SquaresOfParametersAddToLossAndGradientAndALossBeyondFloat32IsInfinite) {
  const FloatView gradient = Upload({1, 1, 1, 1}, 2, 1, 2);
  const DoubleView loss = UploadDoubles({3, 1e39}, 2, 1, 1);
  kernels_->Group<OnPolicyKernels>()->AddSquares(Upload({2, -1, 0, 0}, 2, 1, 2), UploadDoubles({0.5, 0.5}, 2, 1, 1),
                                                 gradient, loss);
  EXPECT_EQ(Download(loss), (Numbers{5.5, kInfinity}));
  EXPECT_EQ(Download(gradient), (Numbers{3, 0, 1, 1}));
}

TEST_P(EveryKernels, OnlyGradientsBeyondTheLimitAreShortened) {
  const FloatView gradient = Upload({3, 4, 6, 8}, 2, 1, 2);
  kernels_->Group<OnPolicyKernels>()->Shorten(UploadDoubles({5, 10}, 2, 1, 1), UploadDoubles({5.1, 5}, 2, 1, 1),
                                              gradient);
  ExpectNear(Download(gradient), {3, 4, 3, 4}, 1e-6, "gradient");
}

// Of the rows many are beyond the clip on either side.
TEST_P(EveryKernels, SurrogateLossAndItsGradientMatchFiniteDifferences) {
  const int rows = 40, n = 2;
  const Numbers means = Random(1, rows * n), stds{-0.3, 0.4};
  LiteralRows c{Random(2, rows * n, 2), Random(3, rows, 2), Random(4, rows)};
  for (double& value : c.log_prob) value -= 3;
  c.advantage[5] = 0;
  const double share = 0.05;
  OnPolicyKernels* const group = kernels_->Group<OnPolicyKernels>();
  const PolicyOutput policy{Upload(means, 1, rows, n), Upload(stds, 1, 1, n)};
  const ActedRows acted{Upload(c.action, 1, rows, n), Upload(c.log_prob, 1, rows, 1), Upload(c.advantage, 1, rows, 1)};
  for (const double clip : {0.2, kInfinity}) {
    const FloatView d_mean = kernels_->NewFloats(1, rows, n), d_log_std = Upload({5, 5}, 1, 1, n);
    const DoubleView loss = UploadDoubles({7}, 1, 1, 1), bound = UploadDoubles({clip}, 1, 1, 1);
    group->SurrogateLoss(policy, acted, bound, share, /*add=*/false, d_mean, d_log_std, loss);
    const double once = LiteralSurrogate(c, means, stds, clip, share);
    EXPECT_NEAR(Download(loss)[0], once, 1e-5 * std::abs(once));
    const Numbers by_mean =
        Differences([&](const Numbers& v) { return LiteralSurrogate(c, v, stds, clip, share); }, means);
    const Numbers by_std =
        Differences([&](const Numbers& v) { return LiteralSurrogate(c, means, v, clip, share); }, stds);
    ExpectNear(Download(d_mean), by_mean, 1e-4, "mean");
    ExpectNear(Download(d_log_std), by_std, 1e-4, "log_std");
    group->SurrogateLoss(policy, acted, bound, share, /*add=*/true, d_mean, d_log_std, loss);
    EXPECT_NEAR(Download(loss)[0], 2 * once, 2e-5 * std::abs(once));
    ExpectNear(Download(d_log_std), {2 * by_std[0], 2 * by_std[1]}, 1e-4, "log_std, added");
  }
}

// KL(N(m, s) || N(m', s')) by summing p log(p / q) over a fine grid.
double DivergenceOnAGrid(double m, double s, double to_m, double to_s) {
  const auto log_density = [](double x, double mean, double std) {
    return -0.5 * std::pow((x - mean) / std, 2) - std::log(std) - 0.5 * std::log(2 * std::acos(-1.0));
  };
  double sum = 0;
  const double step = s / 200;
  for (double x = m - 12 * s; x < m + 12 * s; x += step) {
    const double p = log_density(x, m, s);
    sum += step * std::exp(p) * (p - log_density(x, to_m, to_s));
  }
  return sum;
}

TEST_P(EveryKernels, DivergenceIsFromTheOldPolicyToTheNew) {
  const int rows = 3, n = 2;
  const Numbers before = Random(1, rows * n), after = Random(2, rows * n), log_before{0.1, -0.5}, log_after{0.3, -0.9};
  double wanted = 1;
  for (int i = 0; i < rows * n; ++i) {
    wanted += 0.25 * DivergenceOnAGrid(before[i], std::exp(log_before[i % n]), after[i], std::exp(log_after[i % n]));
  }
  const DoubleView sum = UploadDoubles({1}, 1, 1, 1);
  kernels_->Group<OnPolicyKernels>()->AddDivergence({Upload(before, 1, rows, n), Upload(log_before, 1, 1, n)},
                                                    {Upload(after, 1, rows, n), Upload(log_after, 1, 1, n)}, 0.25, sum);
  EXPECT_NEAR(Download(sum)[0], wanted, 1e-6 * wanted);
}

TEST_P(EveryKernels, MembersBeyondTheDivergenceStopAndResume) {
  const DoubleView active = UploadDoubles({1, 1, 0, 1, 1}, 5, 1, 1), stopped = kernels_->NewDoubles(5, 1, 1);
  kernels_->Group<OnPolicyKernels>()->StopBeyond(UploadDoubles({0.01, 0.03, 0.03, NAN, kInfinity}, 5, 1, 1),
                                                 UploadDoubles({0.02, 0.02, 0.02, 0.02, 0.02}, 5, 1, 1), active,
                                                 stopped);
  EXPECT_EQ(Download(active), (Numbers{1, 0, 0, 0, 0}));
  EXPECT_EQ(Download(stopped), (Numbers{0, 1, 0, 0, 0}));
  kernels_->Group<OnPolicyKernels>()->Resume(stopped, active);
  EXPECT_EQ(Download(active), (Numbers{1, 1, 0, 0, 0}));
  EXPECT_EQ(Download(stopped), (Numbers{0, 0, 0, 0, 0}));
}

TEST_P(EveryKernels, TangentsAreDerivativesAlongADirection) {
  for (Activation activation : {Activation::kTanh, Activation::kSigmoid}) {
    for (const std::vector<int>& widths : {std::vector<int>{5, 20, 9, 3}, {5, 16, 11}, {4, 2}}) {
      const int members = 2, rows = 7;
      ParameterLayout layout;
      const MlpLayout net = layout.AddMlp("net", widths, activation, {});
      const int size = static_cast<int>(layout.size()), in = net.in(), out = net.out();
      const Numbers blocks = Random(1, members * size), along = Random(2, members * size);
      const Numbers inputs = Random(3, members * rows * in);
      const FloatView block = Upload(blocks, members, 1, size), x = Upload(inputs, members, rows, in);
      const MlpTape tape = kernels_->NewTape(net, members, rows), tangent = kernels_->NewTape(net, members, rows + 2);
      kernels_->Forward(block, net, x, tape);
      kernels_->Tangent(block, Upload(along, members, 1, size), net, x, tape, tangent);
      for (int m = 0; m < members; ++m) {
        const auto moved = [&](double step) {
          Numbers p = Member(blocks, members, m);
          for (int i = 0; i < size; ++i) p[i] += step * along[m * size + i];
          return Literal(net, p, Member(inputs, members, m), rows);
        };
        Numbers wanted = moved(1e-5);
        const Numbers below = moved(-1e-5);
        for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = (wanted[i] - below[i]) / 2e-5;
        const Numbers ours = Member(Download(tangent.out), members, m);
        ExpectNear(Numbers(ours.begin(), ours.begin() + rows * out), wanted, 1e-5, "tangent");
      }
    }
  }
}

// Solves A x = b for a positive definite A by elimination.
Numbers Solved(std::vector<Numbers> A, Numbers b) {
  const size_t n = b.size();
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = k + 1; i < n; ++i) {
      const double factor = A[i][k] / A[k][k];
      for (size_t j = k; j < n; ++j) A[i][j] -= factor * A[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = k + 1; j < n; ++j) b[k] -= A[k][j] * b[j];
    b[k] /= A[k][k];
  }
  return b;
}

TEST_P(EveryKernels, ConjugateGradientsSolveAndTheStepHasTheLengthAsked) {
  const int n = 4;
  const Numbers root = Random(1, n * n), gradient = Random(2, n, 100);
  std::vector<Numbers> A(n, Numbers(n));
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      A[i][j] = i == j ? 0.5 : 0;
      for (int k = 0; k < n; ++k) A[i][j] += root[i * n + k] * root[j * n + k];
    }
  }
  const auto product = [&](const Numbers& x) {
    Numbers y(n);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) y[i] += A[i][j] * x[j];
    }
    return y;
  };
  OnPolicyKernels* const group = kernels_->Group<OnPolicyKernels>();
  const auto vector = [this] { return kernels_->NewFloats(1, 1, n); };
  ConjugateSolve solve{
      vector(), vector(), vector(), vector(), kernels_->NewDoubles(1, 1, 1), kernels_->NewDoubles(1, 1, 1)};
  group->BeginSolve(Upload(gradient, 1, 1, n), solve);
  for (int step = 0; step < 15; ++step) {
    solve.product = Upload(product(Download(solve.direction)), 1, 1, n);
    group->ContinueSolve(solve);
  }
  Numbers x = Solved(A, gradient);
  for (double& value : x) value = -value;
  ExpectNear(Download(solve.x), x, 1e-5, "solution");

  const FloatView parameters = Upload({1, 2, 3, 4}, 1, 1, n);
  const DoubleView active = UploadDoubles({1}, 1, 1, 1);
  group->NaturalStep(solve.x, Upload(product(x), 1, 1, n), UploadDoubles({0.01}, 1, 1, 1), active, parameters);
  Numbers moved = Download(parameters);
  for (int i = 0; i < n; ++i) moved[i] -= i + 1;
  EXPECT_NEAR(0.5 * Inner(moved, product(moved)), 0.01, 1e-5) << "the quadratic model of the divergence";
  EXPECT_LT(Inner(moved, gradient), 0) << "the loss falls";
  EXPECT_EQ(Download(active), (Numbers{1}));
}

TEST_P(EveryKernels, ASolverWithoutAResidualStaysAndAStepThatIsNotFiniteFreezes) {
  const int n = 2;
  OnPolicyKernels* const group = kernels_->Group<OnPolicyKernels>();
  const auto vector = [this] { return kernels_->NewFloats(2, 1, n); };
  ConjugateSolve solve{
      vector(), vector(), vector(), vector(), kernels_->NewDoubles(2, 1, 1), kernels_->NewDoubles(2, 1, 1)};
  group->BeginSolve(Upload({0, 0, NAN, 1}, 2, 1, n), solve);
  for (int step = 0; step < 2; ++step) group->ContinueSolve(solve);
  EXPECT_EQ(Member(Download(solve.x), 2, 0), (Numbers{0, 0}));
  EXPECT_EQ(Download(solve.running)[0], 0);
  const DoubleView active = UploadDoubles({1, 1}, 2, 1, 1);
  const FloatView parameters = Upload({1, 2, 3, 4}, 2, 1, n);
  group->NaturalStep(solve.x, solve.product, UploadDoubles({0.01, 0.01}, 2, 1, 1), active, parameters);
  EXPECT_EQ(Download(active), (Numbers{1, 0}));
  EXPECT_EQ(Download(parameters), (Numbers{1, 2, 3, 4}));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
