// Compares the learner core with numbers recorded from the released code (docs/developing.md).
#include <cmath>
#include <string>

#include "common/safety/risk.h"
#include "gtest/gtest.h"
#include "tests/learner/algorithms/golden.h"
#include "tests/learner/test_device.h"
#include "tests/testing/golden.h"
#include "tests/testing/larger_or_nan.h"

namespace datacom::learner {
namespace {

void ExpectClean(const GoldenReport& report, const std::string& path) {
  std::printf("%s: %d checks, gradients off by %.1e of the largest, parameters by %.1e\n", path.c_str(), report.checks,
              report.worst_gradient, report.worst_parameter);
  EXPECT_GT(report.checks, 0);
  for (size_t i = 0; i < report.failures.size() && i < 10; ++i) ADD_FAILURE() << path << ": " << report.failures[i];
}

// The error of all gradients of the recorded updates together, relative to their size, with products of this precision.
// deploy/dev/gpu_trial reads the property.
void CheckPrecision(const std::vector<std::string>& paths, const std::string& precision, double least, double most) {
  double worst = 0;
  for (const std::string& path : paths) {
    const GoldenReport report = CheckUpdates(testing::ReadGoldenJson(path), "tensor", 1, precision);
    worst = testing::LargerOrNan(std::sqrt(report.gradient_error / report.gradient_size), worst);
  }
  std::printf("%s: gradients off by %.1e\n", precision.c_str(), worst);
  ::testing::Test::RecordProperty(precision, std::to_string(worst));
  EXPECT_GE(worst, least);
  EXPECT_LT(worst, most);
}

void CheckUpdateFiles(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const nlohmann::json golden = testing::ReadGoldenJson(path);
    for (const char* kernels : {"fused", "tensor"}) {
      for (int members : {1, 4}) ExpectClean(CheckUpdates(golden, kernels, members), path);
    }
  }
  CheckPrecision(paths, "bf16", 1e-3, 0.25);
  if (TestDevice("tensor") == "cuda") CheckPrecision(paths, "tf32", 0, 0.05);
}

TEST(Golden, c_cvar_margin) {
  DATACOM_GOLDEN_FILES(paths, "c_cvar_margin");
  for (const std::string& path : paths) {
    const testing::GoldenTable table = testing::ReadGoldenCsv(path);
    for (size_t r = 0; r < table.rows.size(); ++r) {
      EXPECT_NEAR(GaussianRiskMargin(table.value(r, "accepted_risk")), table.value(r, "margin"), 1e-12)
          << path << " row " << r;
    }
  }
}

TEST(Golden, d_gaussian_w2) {
  DATACOM_GOLDEN_FILES(paths, "d_gaussian_w2");
  for (const std::string& path : paths) {
    for (const char* kernels : {"fused", "tensor"})
      ExpectClean(CheckGaussianLoss(testing::ReadGoldenJson(path).at("cases"), kernels), path);
  }
}

TEST(Golden, e_delta) {
  DATACOM_GOLDEN_FILES(paths, "e_delta");
  for (const std::string& path : paths) ExpectClean(CheckDelta(testing::ReadGoldenJson(path)), path);
}

TEST(Golden, e_discounted_budget) {
  DATACOM_GOLDEN_FILES(paths, "e_discounted_budget");
  for (const std::string& path : paths) {
    const testing::GoldenTable table = testing::ReadGoldenCsv(path);
    for (size_t r = 0; r < table.rows.size(); ++r) {
      const int horizon = static_cast<int>(table.value(r, "horizon"));
      const double budget = DiscountedBudget(table.value(r, "budget"), horizon, table.value(r, "gamma"));
      EXPECT_NEAR(budget, table.value(r, "discounted_budget"), 1e-9) << path << " row " << r;
    }
  }
}

TEST(Golden, f_iqn_huber) {
  DATACOM_GOLDEN_FILES(paths, "f_iqn_huber");
  for (const std::string& path : paths) {
    for (const char* kernels : {"fused", "tensor"}) {
      ExpectClean(CheckQuantileLoss(testing::ReadGoldenJson(path).at("cases"), kernels), path);
    }
  }
}

TEST(Golden, g_datacom_update) {
  DATACOM_GOLDEN_FILES(paths, "g_datacom_update");
  CheckUpdateFiles(paths);
}

TEST(Golden, h_update_sac) {
  DATACOM_GOLDEN_FILES(paths, "h_update_sac");
  CheckUpdateFiles(paths);
}

TEST(Golden, h_update_iqn) {
  DATACOM_GOLDEN_FILES(paths, "h_update_iqn");
  CheckUpdateFiles(paths);
}

TEST(Golden, h_update_lag) {
  DATACOM_GOLDEN_FILES(paths, "h_update_lag");
  CheckUpdateFiles(paths);
}

TEST(Golden, h_update_wc) {
  DATACOM_GOLDEN_FILES(paths, "h_update_wc");
  CheckUpdateFiles(paths);
}

TEST(Golden, h_update_safelayer) {
  DATACOM_GOLDEN_FILES(paths, "h_update_safelayer");
  CheckUpdateFiles(paths);
}

TEST(Golden, h_cbf_sac_cases) {
  DATACOM_GOLDEN_FILES(paths, "h_cbf_sac_cases");
  for (const std::string& path : paths) {
    for (const char* kernels : {"fused", "tensor"}) {
      ExpectClean(CheckBarrierLoss(testing::ReadGoldenJson(path), kernels), path);
    }
  }
}

TEST(Golden, i_omnisafe_cases) {
  DATACOM_GOLDEN_FILES(paths, "i_omnisafe_cases");
  for (const std::string& path : paths) {
    const nlohmann::json golden = testing::ReadGoldenJson(path);
    ExpectClean(CheckEpochMultiplier(golden.at("lagrange")), path);
    for (const char* kernels : {"fused", "tensor"}) {
      ExpectClean(CheckAdvantages(golden.at("gae"), kernels), path);
      for (int members : {1, 3}) {
        ExpectClean(CheckEpochUpdate(golden.at("updates").at("PPOLag"), "ppo_lag", kernels, members), path);
        ExpectClean(CheckEpochUpdate(golden.at("updates").at("RCPO"), "rcpo", kernels, members), path);
      }
    }
  }
}

TEST(Golden, h_multiplier_and_loss_cases) {
  DATACOM_GOLDEN_FILES(paths, "h_multiplier_and_loss_cases");
  for (const std::string& path : paths) {
    const nlohmann::json golden = testing::ReadGoldenJson(path);
    for (const char* kernels : {"fused", "tensor"}) {
      ExpectClean(CheckMultiplier(golden.at("lagrange_multiplier"), kernels), path);
      ExpectClean(CheckGaussianLoss(golden.at("wcsac_gaussian_loss"), kernels), path);
      ExpectClean(CheckLinearCostLoss(golden.at("safe_layer_regression"), kernels), path);
    }
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
