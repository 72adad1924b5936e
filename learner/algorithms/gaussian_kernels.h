// A Gaussian over discounted cost: its constraint value and the loss that fits it (docs/algorithms.md 3, 4
// and 11).
#ifndef DATACOM_LEARNER_ALGORITHMS_GAUSSIAN_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_GAUSSIAN_KERNELS_H_

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

// The batch of a fit: main rows first, then failure rows.
struct GaussianTarget {
  GaussianHead head;
  FloatView next_mean, next_spread;  // [members, rows, 1] target net's linear outputs at the next state
  FloatView cost, absorbing;         // [members, rows, 1]; negative costs count as 0
  DoubleView failure_weight;         // [members, 1, 1]: failure rows count if 1
  int main_rows = 0;
  double discount = 0;
};

class GaussianKernels : public KernelGroup {
 public:
  // Constraint k = mean + margin * standard deviation - delta of GaussianHead::kFeasibility, and its Jacobian for z,
  // from the Jacobians of the linear outputs. margin, delta: [members, 1, 1].
  virtual void GaussianRisk(const FloatView& mean, const FloatView& log_std, const FloatView& mean_gradient,
                            const FloatView& log_std_gradient, const DoubleView& margin, const DoubleView& delta,
                            const DoubleView& k, const DoubleView& J) = 0;
  // Squared 2-Wasserstein loss [members, 1, 1] and gradients for the online net's linear outputs [members, rows, 1].
  virtual void GaussianLoss(const FloatView& mean, const FloatView& spread, const GaussianTarget& target,
                            const FloatView& d_mean, const FloatView& d_spread, const DoubleView& loss) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_GAUSSIAN_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
