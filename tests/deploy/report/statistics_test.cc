#include "deploy/report/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace datacom::report {
namespace {

TEST(MeanInterval, IsMeanPlusMinusTTimesTheStandardError) {
  const std::vector<double> values = {3, 5, 8, 13, 21};
  const Interval interval = MeanInterval(values);
  const double mean = (3 + 5 + 8 + 13 + 21) / 5.0;
  double variance = 0;
  for (const double value : values) variance += (value - mean) * (value - mean) / 4;
  EXPECT_EQ(interval.count, 5);
  EXPECT_DOUBLE_EQ(interval.mean, mean);
  EXPECT_NEAR(interval.half, 2.7764451052 * std::sqrt(variance / 5), 1e-8);
}

// The values of Student's t at 97.5 % for 1 and 24 degrees of freedom, times a standard error of 1.
TEST(MeanInterval, HasTheHalfWidthOfStudentsTForTwoAndForTwentyFiveValues) {
  EXPECT_NEAR(MeanInterval({0, 2}).half, 12.706, 5e-4);
  std::vector<double> values = {0};  // of 25 values with the standard deviation 5
  for (int i = 0; i < 12; ++i) values.insert(values.end(), {-5, 5});
  EXPECT_NEAR(MeanInterval(values).half, 2.064, 5e-4);
}

TEST(StudentT, IsThatOfPrintedTablesAlsoForOtherThanWholeDegreesOfFreedom) {
  EXPECT_NEAR(StudentT(1), 12.706, 5e-4);
  EXPECT_NEAR(StudentT(10), 2.228, 5e-4);
  EXPECT_NEAR(StudentT(120), 1.980, 5e-4);
  EXPECT_NEAR(StudentT(10, 0.99), 3.169, 5e-4);
  EXPECT_NEAR(StudentT(10, 0.9), 1.812, 5e-4);
  EXPECT_GT(StudentT(2), StudentT(2.5));
  EXPECT_GT(StudentT(2.5), StudentT(3));
}

TEST(MeanInterval, EqualValuesHaveNoSpread) {
  const Interval interval = MeanInterval({6.0024756851377305, 6.0024756851377305, 6.0024756851377305});
  EXPECT_EQ(interval.mean, 6.0024756851377305);
  EXPECT_EQ(interval.half, 0);
  EXPECT_EQ(interval.count, 3);
}

TEST(MeanInterval, IgnoresValuesThatAreNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Interval one = MeanInterval({nan, 4, nan});
  EXPECT_EQ(one.count, 1);
  EXPECT_EQ(one.mean, 4);
  EXPECT_EQ(one.half, 0);
  EXPECT_EQ(MeanInterval({nan}).count, 0);
  EXPECT_EQ(MeanInterval({}).count, 0);
}

TEST(InterquartileMean, LeavesOutTheLowestAndTheHighestQuarter) {
  EXPECT_EQ(ComputeInterquartileMean({9, 1, 3, 1000}).mean, 6);           // removes one of four at each end
  EXPECT_EQ(ComputeInterquartileMean({-50, 1, 2, 3, 4, 5, 99}).mean, 3);  // 7 / 4 rounds down
  EXPECT_EQ(ComputeInterquartileMean({2, 4, 9}).mean, 5);                 // too few to remove any
  EXPECT_EQ(ComputeInterquartileMean({-9, -8, 1, 2, 3, 6, 70, 80}).mean, 3);
}

TEST(InterquartileMean, IgnoresValuesThatAreNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const InterquartileMean one = ComputeInterquartileMean({nan, 4});
  EXPECT_EQ(one.count, 1);
  EXPECT_EQ(one.mean, 4);
  EXPECT_EQ(one.low, 4);
  EXPECT_EQ(one.high, 4);
  EXPECT_EQ(ComputeInterquartileMean({nan}).count, 0);
}

// With three values nothing is trimmed, and the bootstrap's distribution is known: the mean of three draws with
// replacement.
TEST(InterquartileMean, TheIntervalHolds95PercentOfResampledMeans) {
  std::vector<double> values = {0, 1, 5}, means;
  for (const double a : values)
    for (const double b : values)
      for (const double c : values) means.push_back((a + b + c) / 3);
  std::sort(means.begin(), means.end());
  const InterquartileMean middle = ComputeInterquartileMean(values);
  // 1 of 27 resamples is all 0 and one is all 5: 3.7 % each, so the interval ends at the extremes.
  EXPECT_EQ(middle.low, means.front());
  EXPECT_EQ(middle.high, means.back());
  const InterquartileMean again = ComputeInterquartileMean({5, 0, 1});
  EXPECT_EQ(again.low, middle.low);
  EXPECT_EQ(again.high, middle.high);
}

// For many values the interval is close to the normal approximation of the trimmed mean's bootstrap.
TEST(InterquartileMean, TheIntervalShrinksWithTheRootOfTheNumberOfValues) {
  const auto width = [](int count) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back((i + 0.5) / count);
    const InterquartileMean middle = ComputeInterquartileMean(values);
    EXPECT_NEAR(middle.mean, 0.5, 1e-12);
    EXPECT_LT(middle.low, 0.5);
    EXPECT_GT(middle.high, 0.5);
    return middle.high - middle.low;
  };
  EXPECT_NEAR(width(40) / width(360), 3, 0.45);
}

}  // namespace
}  // namespace datacom::report
// SPDX-License-Identifier: Apache-2.0
