// Golden checks of the learner core as plain functions. Each deviation is one sentence in `failures`.
#ifndef DATACOM_TESTS_LEARNER_ALGORITHMS_GOLDEN_H_
#define DATACOM_TESTS_LEARNER_ALGORITHMS_GOLDEN_H_

#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"
#include "nlohmann/json.hpp"

namespace datacom::learner {

struct GoldenReport {
  int checks = 0;
  double worst_gradient = 0;                     // relative to the array's largest entry
  double worst_parameter = 0;                    // absolute
  double gradient_error = 0, gradient_size = 0;  // sums of squares over all gradients
  std::vector<std::string> failures;
  void Check(bool good, const std::string& sentence);
};

// All numbers of nested lists, in order; true is 1.
std::vector<float> Floats(const nlohmann::json& nested);
// Transposes a golden weight [out][in] to [in, out]; returns a bias or scalar unchanged.
std::vector<float> AsStored(const nlohmann::json& array);

// d_, h_multiplier_and_loss_cases/wcsac_gaussian_loss: 2-Wasserstein losses. kernels: "fused" or "tensor".
GoldenReport CheckGaussianLoss(const nlohmann::json& cases, const std::string& kernels);
// h_multiplier_and_loss_cases/lagrange_multiplier: sequences of multiplier steps.
GoldenReport CheckMultiplier(const nlohmann::json& cases, const std::string& kernels);
// h_multiplier_and_loss_cases/safe_layer_regression: the linear cost model's loss.
GoldenReport CheckLinearCostLoss(const nlohmann::json& cases, const std::string& kernels);
// h_cbf_sac_cases: the barrier's loss and its second-order gradients, for a double integrator.
GoldenReport CheckBarrierLoss(const nlohmann::json& golden, const std::string& kernels);
// i_omnisafe_cases/lagrange: sequences of multiplier steps; /gae: advantages of paths with all three kinds of end;
// /updates: one update of "ppo_lag" or "rcpo", whose only minibatch is the whole epoch.
GoldenReport CheckEpochMultiplier(const nlohmann::json& cases);
GoldenReport CheckAdvantages(const nlohmann::json& golden, const std::string& kernels);
GoldenReport CheckEpochUpdate(const nlohmann::json& golden, const std::string& algorithm, const std::string& kernels,
                              int members);
// f_: quantile Huber losses.
GoldenReport CheckQuantileLoss(const nlohmann::json& cases, const std::string& kernels);
// e_delta: sequences of threshold updates.
GoldenReport CheckDelta(const nlohmann::json& golden);
// g_, h_update_: consecutive updates. members > 1: the golden member and perturbed copies of it, each of which must
// equal its run alone to 1e-6.
GoldenReport CheckUpdates(const nlohmann::json& golden, const std::string& kernels, int members,
                          const std::string& precision = "float32");

// A control-affine system by its golden name ("toy2", "tiago", "cartpole"; docs/developing.md),
// evaluated by its formulas.
struct GoldenSystem {
  int obs = 0, action = 0, q = 0, x = 0;
};
GoldenSystem SystemOf(const std::string& name);
void Features(const std::string& name, const double* obs, float* z, double* f, double* G, double* x_dot);

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_LEARNER_ALGORITHMS_GOLDEN_H_
// SPDX-License-Identifier: Apache-2.0
