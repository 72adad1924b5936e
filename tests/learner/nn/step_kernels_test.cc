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

TEST_P(EveryKernels, GradientNormIsEuclideanAndFindsEntriesThatAreNotFinite) {
  for (const int n : {1, 3, 16, 2047, 2049, 5000}) {
    Numbers gradient = Random(2, 3 * n, 4);
    gradient[n] = 1e30;           // its square overflows float32
    gradient[3 * n - 1] = 2e-12;  // its square is small
    const DoubleView norm = kernels_->NewDoubles(3, 1, 1), active = UploadDoubles({1, 1, 0}, 3, 1, 1);
    kernels_->GradientNorm(Upload(gradient, 3, 1, n), norm, active);
    for (int m = 0; m < 3; ++m) {
      long double sum = 0;
      for (int i = 0; i < n; ++i) {
        const float entry = static_cast<float>(gradient[m * n + i]);
        sum += static_cast<long double>(entry) * entry;
      }
      const double wanted = static_cast<double>(std::sqrt(sum));
      EXPECT_NEAR(Download(norm)[m], wanted, 1e-6 * wanted) << n << " entries, member " << m;
    }
    EXPECT_EQ(Download(active), (Numbers{1, 1, 0}));
    for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      Numbers spoilt = gradient;
      spoilt[2 * n - 1] = bad;
      const DoubleView left = UploadDoubles({1, 1, 1}, 3, 1, 1);
      kernels_->GradientNorm(Upload(spoilt, 3, 1, n), norm, left);
      EXPECT_EQ(Download(left), (Numbers{1, 0, 1})) << n << " entries, " << bad;
    }
  }
}

TEST_P(EveryKernels, AccumulateLeastIgnoresInactiveMembersAndTheInitialZero) {
  const DoubleView least = kernels_->NewDoubles(2, 1, 2), active = UploadDoubles({1, 0}, 2, 1, 1);
  for (const double value : {5.0, 3.0, 4.0})
    kernels_->AccumulateLeast(UploadDoubles({value, 1}, 2, 1, 1), active, least);
  EXPECT_EQ(Download(least), (Numbers{3, 3, 0, 0}));
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
