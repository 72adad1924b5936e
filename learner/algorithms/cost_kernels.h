// Targets and prices of cost for LagSAC and WCSAC (docs/algorithms.md 10 and 11). Costs are [members, rows,
// 1].
#ifndef DATACOM_LEARNER_ALGORITHMS_COST_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_COST_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

class CostKernels : public KernelGroup {
 public:
  // y = max(cost, 0) + discount (1 - absorbing) next.
  virtual void CostTarget(const FloatView& cost, const FloatView& absorbing, const FloatView& next, double discount,
                          const FloatView& y) = 0;
  // CVaR of GaussianHead::kCost (gaussian_kernels.h).
  virtual void CostRisk(const FloatView& mean, const FloatView& spread, const DoubleView& margin,
                        const FloatView& cvar) = 0;
  // Computes the gradient for the spread from the gradient for the CVaR, which is also the gradient for the mean.
  virtual void CostRiskGradient(const FloatView& d_cvar, const FloatView& spread, const DoubleView& margin,
                                const FloatView& d_spread) = 0;
  // Multiplier softplus(raw) of the constraint mean_cost <= limit: the gradient of softplus(raw) * (limit - mean_cost)
  // for raw, and the weight of cost in the actor's loss, price = softplus(raw) - damping * (limit - mean_cost).
  virtual void Multiplier(const FloatView& raw, const DoubleView& mean_cost, const DoubleView& limit,
                          const DoubleView& damping, const DoubleView& price, const FloatView& gradient) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_COST_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
