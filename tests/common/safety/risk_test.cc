#include "common/safety/risk.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/testing/golden.h"

namespace datacom {
namespace {

TEST(Golden, c_cvar_margin) {
  DATACOM_GOLDEN_FILES(files, "c_cvar_margin");
  for (const std::string& file : files) {
    const testing::GoldenTable table = testing::ReadGoldenCsv(file);
    for (size_t i = 0; i < table.rows.size(); ++i) {
      const double rho = table.value(i, "accepted_risk"), margin = table.value(i, "margin");
      EXPECT_NEAR(GaussianRiskMargin(rho), margin, 1e-12 * margin) << file << " rho " << rho;
      const double quantile = table.value(i, "var_z");
      EXPECT_NEAR(InverseNormalCdf(1 - rho), quantile, 1e-12 * std::max(1e-3, std::abs(quantile)))
          << file << " rho " << rho;
    }
  }
}

TEST(Golden, e_discounted_budget) {
  DATACOM_GOLDEN_FILES(files, "e_discounted_budget");
  for (const std::string& file : files) {
    const testing::GoldenTable table = testing::ReadGoldenCsv(file);
    for (size_t i = 0; i < table.rows.size(); ++i) {
      const double want = table.value(i, "discounted_budget");
      const double got = DiscountedBudget(table.value(i, "budget"), static_cast<int>(table.value(i, "horizon")),
                                          table.value(i, "gamma"));
      EXPECT_NEAR(got, want, 1e-12 * std::max(1.0, want)) << file << " row " << i;
    }
  }
}

TEST(Risk, InverseNormalCdfInvertsTheNormalCdfAlsoInTheTails) {
  for (double x = -37; x <= 8; x += 0.375) {
    const double p = 0.5 * std::erfc(-x * std::sqrt(0.5));
    // Above the centre p holds 1 - p only to absolute precision, so compare probabilities there.
    if (x <= 0) {
      EXPECT_NEAR(InverseNormalCdf(p), x, 1e-13 * std::max(1e-3, std::abs(x))) << x;
    } else if (p < 1) {
      EXPECT_NEAR(0.5 * std::erfc(-InverseNormalCdf(p) * std::sqrt(0.5)), p, 3e-16) << x;
    }
  }
  EXPECT_NEAR(InverseNormalCdf(0.5), 0, 1e-16);
  EXPECT_EQ(InverseNormalCdf(0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(InverseNormalCdf(1), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(InverseNormalCdf(-0.1)));
}

TEST(Risk, ConvertsThePapersBudgetToADiscountedOne) {
  EXPECT_NEAR(DiscountedBudget(40, 1000, 0.99), 3.99983, 1e-5);
  EXPECT_NEAR(DiscountedBudget(1, 300, 0.99), 0.31699, 1e-5);
  EXPECT_EQ(DiscountedBudget(0, 500, 0.99), 0);
  EXPECT_EQ(DiscountedBudget(7, 10, 0), 0.7);
  EXPECT_EQ(DiscountedBudget(7, 10, 1), 7);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
