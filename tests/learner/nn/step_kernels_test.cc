// Compares both implementations of steps of optimisers, their statistics and undoing them with their definitions.
#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "learner/nn/kernels.h"
#include "tests/learner/nn/kernels_testing.h"

namespace datacom::learner {
namespace {

TEST_P(EveryKernels, AdamFollowsItsDefinitionAndSkipsInactiveMembers) {
  const int n = 21;
  const Numbers start = Random(1, 2 * n), gradient = Random(2, 2 * n);
  const AdamRange range{Upload(start, 2, 1, n),
                        Upload(gradient, 2, 1, n),
                        kernels_->NewFloats(2, 1, n),
                        kernels_->NewFloats(2, 1, n),
                        UploadDoubles({0.01, 0.01}, 2, 1, 1),
                        kernels_->NewDoubles(2, 1, 1),
                        UploadDoubles({1, 0}, 2, 1, 1),
                        {}};
  for (int step = 0; step < 3; ++step) kernels_->Adam(range);
  const Numbers after = Download(range.parameters);
  for (int i = 0; i < n; ++i) {
    // With a constant gradient every bias-corrected step is lr * sign (up to eps).
    EXPECT_NEAR(after[i], start[i] - 3 * 0.01 * (gradient[i] > 0 ? 1 : -1), 1e-5);
    EXPECT_EQ(after[n + i], start[n + i]);
  }
  EXPECT_EQ(Download(range.steps), (Numbers{3, 0}));
}

TEST_P(EveryKernels, AdamsRateHasHalvedAfterItsHalfLife) {
  const FloatView zeros = Upload({0, 0}, 2, 1, 1), more = Upload({0, 0}, 2, 1, 1);
  const DoubleView rates = UploadDoubles({0.01, 0.01}, 2, 1, 1), steps = UploadDoubles({0, 0}, 2, 1, 1);
  const DoubleView active = UploadDoubles({1, 1}, 2, 1, 1), decay = UploadDoubles({0.5, 0}, 2, 1, 1);
  const AdamRange range{Upload({5, 5}, 2, 1, 1), Upload({3, 3}, 2, 1, 1), zeros, more, rates, steps, active, decay};
  for (int step = 0; step < 3; ++step) kernels_->Adam(range);
  EXPECT_NEAR(Download(range.parameters)[0], 5 - 0.01 * (std::sqrt(0.5) + 0.5 + std::sqrt(0.125)), 1e-5);
  EXPECT_NEAR(Download(range.parameters)[1], 4.97, 1e-5);
}

// Member 0: its second moment overflows, so it stays where it is. Member 1: inactive, with moments that are no numbers.
TEST_P(EveryKernels, AdamAndPolyakKeepWhatOverflowsAndTheBitsOfInactiveMembers) {
  const double inf = HUGE_VAL, nan = std::nan("");
  const AdamRange range{Upload({1, -0.0}, 2, 1, 1),     Upload({1e20, nan}, 2, 1, 1),
                        Upload({0, -0.0}, 2, 1, 1),     Upload({0, inf}, 2, 1, 1),
                        UploadDoubles({1, 1}, 2, 1, 1), kernels_->NewDoubles(2, 1, 1),
                        UploadDoubles({1, 0}, 2, 1, 1), {}};
  for (int step = 0; step < 2; ++step) kernels_->Adam(range);
  EXPECT_EQ(Download(range.parameters)[0], 1);
  EXPECT_EQ(Download(range.second_moment), (Numbers{inf, inf}));
  const FloatView target = Upload({0, -0.0}, 2, 1, 1);
  kernels_->Polyak(Upload({2, nan}, 2, 1, 1), 0.5, range.active, target);
  EXPECT_EQ(Download(target)[0], 1);
  for (const FloatView& kept : {range.parameters, range.first_moment, target}) {
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
