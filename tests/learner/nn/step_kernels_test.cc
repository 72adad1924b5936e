// Compares both implementations of steps of optimisers, their statistics and undoing them with their definitions.
#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "learner/nn/kernels.h"
#include "tests/learner/nn/kernels_testing.h"

namespace datacom::learner {
namespace {

// Adam of two members, whose blocks have n columns. Moments and steps start at 0.
class EveryKernelsAdam : public EveryKernels {
 protected:
  AdamRanges Ranges(const Numbers& parameters, const Numbers& gradients, const std::vector<ColumnRange>& ranges,
                    const Numbers& rates) {
    const int n = static_cast<int>(parameters.size()) / 2, count = static_cast<int>(ranges.size());
    AdamRanges result;
    result.state = kernels_->NewFloats(2, 3, n);
    SetRow(result, 0, parameters);
    result.gradients = Upload(gradients, 2, 1, n);
    result.ranges = ranges.data();
    result.learning_rates = UploadDoubles(rates, 2, count, 1);
    result.steps = kernels_->NewDoubles(2, count, 1);
    result.active = UploadDoubles({1, 1}, 2, 1, 1);
    return result;
  }
  // Row 0 holds the parameters, rows 1 and 2 the moments.
  void SetRow(const AdamRanges& ranges, int row, const Numbers& values) {
    const std::vector<float> narrow(values.begin(), values.end());
    kernels_->Upload(narrow.data(), ranges.state.Rows(row, 1));
  }
  Numbers Row(const AdamRanges& ranges, int row) { return Download(ranges.state.Rows(row, 1)); }
};
INSTANTIATE_TEST_SUITE_P(All, EveryKernelsAdam, ::testing::Values("fused", "tensor"),
                         [](const auto& info) { return info.param; });

TEST_P(EveryKernelsAdam, FollowsItsDefinitionAndSkipsInactiveMembers) {
  const int n = 21;
  const Numbers start = Random(1, 2 * n), gradient = Random(2, 2 * n);
  const std::vector<ColumnRange> whole{{0, n}};
  AdamRanges ranges = Ranges(start, gradient, whole, {0.01, 0.01});
  ranges.active = UploadDoubles({1, 0}, 2, 1, 1);
  for (int step = 0; step < 3; ++step) kernels_->Adam(ranges);
  const Numbers after = Row(ranges, 0);
  for (int i = 0; i < n; ++i) {
    // With a constant gradient every bias-corrected step is lr * sign (up to eps).
    EXPECT_NEAR(after[i], start[i] - 3 * 0.01 * (gradient[i] > 0 ? 1 : -1), 1e-5);
    EXPECT_EQ(after[n + i], start[n + i]);
  }
  EXPECT_EQ(Download(ranges.steps), (Numbers{3, 0}));
}

TEST_P(EveryKernelsAdam, OptimisersThatStepTogetherMoveLikeThoseThatStepAloneAndLeaveOtherColumns) {
  const int n = 40;
  const Numbers start = Random(1, 2 * n), gradient = Random(2, 2 * n);
  const std::vector<ColumnRange> both{{20, 17}, {3, 9}};
  const AdamRanges together = Ranges(start, gradient, both, {0.01, 0.2, 0.03, 0});
  kernels_->Upload(Numbers{5, 0, 0, 7}.data(), together.steps);
  AdamRanges alone = Ranges(start, gradient, both, {0.01, 0.2, 0.03, 0});
  kernels_->Upload(Numbers{5, 0, 0, 7}.data(), alone.steps);
  const DoubleView rates = alone.learning_rates, steps = alone.steps;
  for (int step = 0; step < 2; ++step) {
    kernels_->Adam(together);
    for (int i = 0; i < 2; ++i) {
      alone.ranges = &both[i], alone.learning_rates = rates.Rows(i, 1), alone.steps = steps.Rows(i, 1);
      kernels_->Adam(alone);
    }
  }
  EXPECT_EQ(Download(together.state), Download(alone.state));
  EXPECT_EQ(Download(together.steps), (Numbers{7, 2, 2, 9}));
  const Numbers after = Row(together, 0);
  for (int i = 0; i < 2 * n; ++i) {
    const int column = i % n, member = i / n;
    const bool first = column >= 20 && column < 37, second = column >= 3 && column < 12;
    // The second optimiser of member 1 has the rate 0.
    EXPECT_EQ(after[i] != start[i], first || (second && member == 0)) << i;
  }
}

TEST_P(EveryKernelsAdam, ItsRateHasHalvedAfterItsHalfLife) {
  const std::vector<ColumnRange> whole{{0, 1}};
  AdamRanges ranges = Ranges({5, 5}, {3, 3}, whole, {0.01, 0.01});
  ranges.decay = UploadDoubles({0.5, 0}, 2, 1, 1);
  for (int step = 0; step < 3; ++step) kernels_->Adam(ranges);
  EXPECT_NEAR(Row(ranges, 0)[0], 5 - 0.01 * (std::sqrt(0.5) + 0.5 + std::sqrt(0.125)), 1e-5);
  EXPECT_NEAR(Row(ranges, 0)[1], 4.97, 1e-5);
}

// Member 0: its second moment overflows, so it stays where it is. Member 1: inactive, with moments that are no numbers.
TEST_P(EveryKernelsAdam, AndPolyakKeepWhatOverflowsAndTheBitsOfInactiveMembers) {
  const double inf = HUGE_VAL, nan = std::nan("");
  const std::vector<ColumnRange> whole{{0, 1}};
  AdamRanges ranges = Ranges({1, -0.0}, {1e25, nan}, whole, {1, 1});
  SetRow(ranges, 1, {0, -0.0}), SetRow(ranges, 2, {0, inf});
  ranges.active = UploadDoubles({1, 0}, 2, 1, 1);
  for (int step = 0; step < 2; ++step) kernels_->Adam(ranges);
  EXPECT_EQ(Row(ranges, 0)[0], 1);
  EXPECT_EQ(Row(ranges, 2), (Numbers{inf, inf}));
  const FloatView target = Upload({0, -0.0}, 2, 1, 1);
  kernels_->Polyak(Upload({2, nan}, 2, 1, 1), 0.5, ranges.active, target);
  EXPECT_EQ(Download(target)[0], 1);
  for (const FloatView& kept : {ranges.state.Rows(0, 1), ranges.state.Rows(1, 1), target}) {
    EXPECT_TRUE(Download(kept)[1] == 0 && std::signbit(Download(kept)[1]));
  }
}

// The tensor kernels sum squares in float32. Gradients whose squares overflow there make Adam's second moments
// infinite, too, so a member is frozen instead of going on with parameters that never move again.
TEST_P(EveryKernels, GradientNormIsEuclideanAndFindsEntriesThatAreNotFinite) {
  const double large = GetParam() == "fused" ? 1e30 : 1e18;
  for (const int n : {1, 3, 16, 2047, 2049, 5000}) {
    Numbers gradient = Random(2, 3 * n, 4);
    gradient[n] = large;
    gradient[3 * n - 1] = 2e-12;  // its square is small
    const DoubleView norm = kernels_->NewDoubles(3, 1, 1);
    kernels_->GradientNorm(Upload(gradient, 3, 1, n), norm);
    const Numbers norms = Download(norm);
    for (int m = 0; m < 3; ++m) {
      long double sum = 0;
      for (int i = 0; i < n; ++i) {
        const float entry = static_cast<float>(gradient[m * n + i]);
        sum += static_cast<long double>(entry) * entry;
      }
      const double wanted = static_cast<double>(std::sqrt(sum));
      EXPECT_NEAR(norms[m], wanted, 1e-6 * wanted) << n << " entries, member " << m;
    }
    for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      Numbers spoilt = gradient;
      spoilt[2 * n - 1] = bad;
      kernels_->GradientNorm(Upload(spoilt, 3, 1, n), norm);
      EXPECT_FALSE(std::isfinite(Download(norm)[1])) << n << " entries, " << bad;
      EXPECT_TRUE(std::isfinite(Download(norm)[0]) && std::isfinite(Download(norm)[2])) << n << " entries, " << bad;
    }
  }
}

TEST_P(EveryKernels, OneValueThatIsNotFiniteMakesAMemberInactiveAndNoneMakesOneActive) {
  const double inf = HUGE_VAL, nan = std::nan("");
  const DoubleView active = UploadDoubles({1, 1, 1, 1, 0}, 5, 1, 1);
  kernels_->DeactivateUnlessFinite(UploadDoubles({1, 1e300, -3, 1, nan, 2, -inf, 0, 0, 2, 2, inf, 1, 2, 3}, 5, 3, 1),
                                   active);
  EXPECT_EQ(Download(active), (Numbers{1, 0, 0, 0, 0}));
  const DoubleView values = UploadDoubles({1, 2, nan, 4}, 2, 2, 1);
  kernels_->SetZero(values);
  EXPECT_EQ(Download(values), (Numbers{0, 0, 0, 0}));
}

// Three rows of a wider array: a smallest value, a sum, and a sum of negative values. Member 1 is not active.
TEST_P(EveryKernels, SumsAndSmallestValuesAreThoseOfActiveMembers) {
  const double inf = HUGE_VAL, nan = std::nan("");
  const DoubleView sums = UploadDoubles({7, 7, inf, 0, 0, 0, 10, 1, 8, 8, 9, 9, inf, 0, 5, 5, 6, 6, 10, 10}, 2, 5, 2);
  const DoubleView signs = UploadDoubles({1, 1, 1, -1, 1}, 1, 5, 1), active = UploadDoubles({1, 0}, 2, 1, 1);
  for (const double value : {5.0, 3.0, 4.0}) {
    const DoubleView values = UploadDoubles({0, value, value, value, 0, 0, nan, inf, 1, 0}, 2, 5, 1);
    kernels_->Accumulate({values.Rows(1, 3), signs.Rows(1, 3), sums.Rows(1, 3), /*smallest=*/1}, active);
  }
  EXPECT_EQ(Download(sums), (Numbers{7, 7, 3, 3, 12, 3, -2, 4, 8, 8, 9, 9, inf, 0, 5, 5, 6, 6, 10, 10}));
  kernels_->Accumulate({UploadDoubles({2, 1}, 2, 1, 1), signs.Rows(0, 1), sums.Rows(1, 1), /*smallest=*/1}, active);
  kernels_->Accumulate({UploadDoubles({6, 1}, 2, 1, 1), signs.Rows(0, 1), sums.Rows(0, 1), /*smallest=*/0}, active);
  EXPECT_EQ(Download(sums.Rows(0, 2)), (Numbers{13, 8, 2, 4, 9, 9, inf, 0}));
}

TEST_P(EveryKernels, RestoreCopiesBackOnlyMembersThatAreNotActive) {
  const Numbers start = Random(1, 4 * 10), changed = Random(2, 4 * 10);
  const FloatView all = Upload(start, 4, 2, 5), range = all.Cols(1, 3), kept = kernels_->NewFloats(4, 2, 3);
  const DoubleView steps = UploadDoubles({1, 2, 3, 4}, 4, 1, 1), kept_steps = kernels_->NewDoubles(4, 1, 1);
  const DoubleView active = UploadDoubles({1, 0, 1, 0}, 4, 1, 1);
  kernels_->Copy(range, kept);
  kernels_->Copy(steps, kept_steps);
  kernels_->Upload(std::vector<float>(changed.begin(), changed.end()).data(), all);
  kernels_->Copy(UploadDoubles({6, 7, 8, 9}, 4, 1, 1), steps);
  kernels_->Restore(kept, active, range);
  kernels_->Restore(kept_steps, active, steps);
  Numbers wanted = changed;
  for (const int first : {11, 16, 31, 36}) std::copy_n(start.begin() + first, 3, wanted.begin() + first);
  EXPECT_EQ(Download(all), wanted);
  EXPECT_EQ(Download(steps), (Numbers{6, 2, 8, 4}));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
