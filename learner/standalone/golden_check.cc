// Compares this build of the learner core with the golden files, without a test framework.
//
//   golden_check FOLDER [cpu|cuda]      FOLDER: tests/golden/algorithms; exits with 0 if every file agrees
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include "tests/learner/core_golden.h"

namespace datacom::learner {
namespace {

bool Good(const std::string& label, const GoldenReport& report) {
  std::printf("%-60s %5d checks, %zu failures, gradients off by %.1e of the largest\n", label.c_str(), report.checks,
              report.failures.size(), report.worst_gradient);
  for (size_t i = 0; i < report.failures.size() && i < 5; ++i) std::printf("  %s\n", report.failures[i].c_str());
  return report.failures.empty() && report.checks > 0;
}

bool Run(const std::string& folder, const std::string& device) {
  const auto read = [&folder](const std::string& name) {
    std::ifstream file(folder + "/" + name);
    if (!file) throw std::runtime_error("cannot read " + folder + "/" + name);
    return nlohmann::json::parse(file);
  };
  std::vector<std::string> kinds{"tensor"};
  if (device == "cpu") kinds.emplace_back("fused");
  bool good = Good("e_delta_update.json", CheckDelta(read("e_delta_update.json")));
  for (const std::string& kernels : kinds) {
    if (device == "cpu") {
      const nlohmann::json losses = read("h_multiplier_and_loss_cases.json");
      good &=
          Good("d_gaussian_w2.json, " + kernels, CheckGaussianLoss(read("d_gaussian_w2.json").at("cases"), kernels));
      good &= Good("f_iqn_huber.json, " + kernels, CheckQuantileLoss(read("f_iqn_huber.json").at("cases"), kernels));
      good &= Good("wcsac_gaussian_loss, " + kernels, CheckGaussianLoss(losses.at("wcsac_gaussian_loss"), kernels));
      good &= Good("h_cbf_sac_cases.json, " + kernels, CheckBarrierLoss(read("h_cbf_sac_cases.json"), kernels));
      good &=
          Good("safe_layer_regression, " + kernels, CheckLinearCostLoss(losses.at("safe_layer_regression"), kernels));
      const nlohmann::json epochs = read("i_omnisafe_cases.json");
      good &= Good("gae, " + kernels, CheckAdvantages(epochs.at("gae"), kernels));
      for (int members : {1, 3}) {
        const nlohmann::json& updates = epochs.at("updates");
        good &= Good("PPOLag, " + kernels, CheckEpochUpdate(updates.at("PPOLag"), "ppo_lag", kernels, members));
        good &= Good("RCPO, " + kernels, CheckEpochUpdate(updates.at("RCPO"), "rcpo", kernels, members));
      }
      good &= Good("lagrange_multiplier, " + kernels, CheckMultiplier(losses.at("lagrange_multiplier"), kernels));
    }
    for (const char* name : {"g_datacom_update_toy2.json", "g_datacom_update_tiago.json", "h_update_sac.json",
                             "h_update_lag.json", "h_update_wc.json", "h_update_iqn.json", "h_update_safelayer.json"}) {
      for (int members : {1, 4}) {
        const std::string label = std::string(name) + ", " + kernels + ", members " + std::to_string(members);
        good &= Good(label, CheckUpdates(read(name), kernels, members, device));
      }
    }
  }
  return good;
}

}  // namespace
}  // namespace datacom::learner

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: golden_check FOLDER [cpu|cuda]\n");
    return 2;
  }
  try {
    return datacom::learner::Run(argv[1], argc > 2 ? argv[2] : "cpu") ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "golden_check: %s\n", error.what());
    return 2;
  }
}
