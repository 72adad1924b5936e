// WCSAC (docs/algorithms.md 11): LagSAC whose cost critic is a Gaussian over the discounted cost of [s, a].
// Multiplier, damping and actor use its CVaR at the accepted risk instead of the expectation.
#include "common/safety/risk.h"
#include "learner/algorithms/gaussian_kernels.h"
#include "learner/algorithms/lag_sac.h"
#include "learner/algorithms/register_algorithm.h"

namespace datacom::learner {
namespace {

class Wcsac : public LagSac {
 public:
  explicit Wcsac(const AlgorithmConfig& config);

 protected:
  FloatView ExecutedCost() override;
  FloatView StoredCost() override;
  void SpreadCostGradient() override;
  void CostLoss(const FloatView& cost, const DoubleView& loss) override;

 private:
  GaussianKernels* const gaussian_kernels_;
  DoubleView margin_;                      // [M, 1, 1]
  FloatView executed_cvar_, stored_cvar_;  // [block, B, 1]
  DoubleView no_failures_;                 // [block, 1, 1]
};

constexpr int kMean = 0, kSpread = 1;

const RegisterAlgorithm<Wcsac> kRegistered("wcsac");

}  // namespace

Wcsac::Wcsac(const AlgorithmConfig& config)
    : LagSac(config, {"cost_critic.mean", "cost_critic.std"}), gaussian_kernels_(kernels_->Group<GaussianKernels>()) {
  margin_ = NewScalar([](const v1::Hyper& hyper) { return GaussianRiskMargin(hyper.accepted_risk()); });
  executed_cvar_ = kernels_->NewFloats(block_, batch_, 1);
  stored_cvar_ = kernels_->NewFloats(block_, batch_, 1);
  no_failures_ = kernels_->NewDoubles(block_, 1, 1);
}

FloatView Wcsac::ExecutedCost() {
  cost_kernels_->CostRisk(cost_critics_.executed(kMean), cost_critics_.executed(kSpread), Block(margin_),
                          executed_cvar_);
  return executed_cvar_;
}

FloatView Wcsac::StoredCost() {
  cost_kernels_->CostRisk(cost_critics_.stored(kMean), cost_critics_.stored(kSpread), Block(margin_), stored_cvar_);
  return stored_cvar_;
}

void Wcsac::SpreadCostGradient() {  // the gradient for the mean is the gradient for the CVaR
  cost_kernels_->CostRiskGradient(cost_critics_.d_out(kMean), cost_critics_.executed(kSpread), Block(margin_),
                                  cost_critics_.d_out(kSpread));
}

void Wcsac::CostLoss(const FloatView& cost, const DoubleView& loss) {
  const GaussianTarget target{GaussianHead::kCost,
                              cost_critics_.next(kMean),
                              cost_critics_.next(kSpread),
                              cost,
                              critic_input().absorbing,
                              no_failures_,
                              batch_,
                              config_.discount};
  gaussian_kernels_->GaussianLoss(cost_critics_.stored(kMean), cost_critics_.stored(kSpread), target,
                                  cost_critics_.d_out(kMean), cost_critics_.d_out(kSpread), loss);
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
