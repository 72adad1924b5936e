// Discounted cost: its targets and its price for LagSAC and WCSAC (docs/algorithms.md 10 and 11), and a
// Gaussian over it, with the constraint value of D-ATACOM and the loss that fits it (3, 4 and 11). Costs are [members,
// rows, 1].
#ifndef DATACOM_LEARNER_ALGORITHMS_COST_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_COST_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

// How two linear outputs m, s describe a Gaussian over discounted cost, and how the fit treats absorbing states and the
// limits of the standard deviation.
enum class GaussianHead {
  // docs/algorithms.md 3: mean softplus(m), log standard deviation s; absorbing changes the target's
  // variance.
  kFeasibility,
  // docs/algorithms.md 11: mean m, standard deviation softplus(s); absorbing does not change the target's
  // variance.
  kCost,
};

// The batch of a fit, [members, rows, 1].
struct GaussianTarget {
  GaussianHead head;
  FloatView next_mean, next_spread;  // target net's linear outputs at the next state
  FloatView cost, absorbing;         // negative costs count as 0
  // Rows that count come first and have the weight 1 / their number. The others have 0, and finite numbers.
  FloatView row_weight;
  double discount = 0;
};

class CostKernels : public KernelGroup {
 public:
  // y = max(cost, 0) + discount (1 - absorbing) next.
  virtual void CostTarget(const FloatView& cost, const FloatView& absorbing, const FloatView& next, double discount,
                          const FloatView& y) = 0;
  // CVaR of GaussianHead::kCost. margin: [members, 1, 1].
  virtual void CostRisk(const FloatView& mean, const FloatView& spread, const FloatView& margin,
                        const FloatView& cvar) = 0;
  // Computes the gradient for the spread from the gradient for the CVaR, which is also the gradient for the mean.
  virtual void CostRiskGradient(const FloatView& d_cvar, const FloatView& spread, const FloatView& margin,
                                const FloatView& d_spread) = 0;
  // Multiplier softplus(raw) of the constraint mean_cost <= limit: the gradient of softplus(raw) * (limit - mean_cost)
  // for raw, and the weight of cost in the actor's loss, price = softplus(raw) - damping * (limit - mean_cost).
  virtual void Multiplier(const FloatView& raw, const DoubleView& mean_cost, const DoubleView& limit,
                          const DoubleView& damping, const DoubleView& price, const FloatView& gradient) = 0;

  // d_action += multiplier d_cost sum|d_action| / max(sum|d_cost|, 1e-9), with sums over a member's rows and actions;
  // unchanged where the multiplier is 0. d_cost, d_action: [members, rows, action].
  virtual void AddPriced(const DoubleView& multiplier, const FloatView& d_cost, const FloatView& d_action) = 0;

  // Constraint k = mean + margin * standard deviation - delta of GaussianHead::kFeasibility, and its Jacobian for z,
  // from the Jacobians of the linear outputs. margin, delta: [members, 1, 1].
  virtual void GaussianRisk(const FloatView& mean, const FloatView& log_std, const FloatView& mean_gradient,
                            const FloatView& log_std_gradient, const FloatView& margin, const DoubleView& delta,
                            const DoubleView& k, const DoubleView& J) = 0;
  // Squared 2-Wasserstein loss [members, 1, 1] and gradients for the online net's linear outputs [members, rows, 1].
  virtual void GaussianLoss(const FloatView& mean, const FloatView& spread, const GaussianTarget& target,
                            const FloatView& d_mean, const FloatView& d_spread, const DoubleView& loss) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_COST_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
