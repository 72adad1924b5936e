// Losses and targets that all critics share. Values q and targets y are [members, rows, 1].
#ifndef DATACOM_LEARNER_ALGORITHMS_CRITIC_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_CRITIC_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

class CriticKernels : public KernelGroup {
 public:
  // y = reward + discount (1 - absorbing) min(q0, q1).
  virtual void MinTarget(const FloatView& reward, const FloatView& absorbing, const FloatView& q0, const FloatView& q1,
                         double discount, const FloatView& y) = 0;
  // y = max(y, least), in place. NaN stays NaN.
  virtual void Floor(const DoubleView& least, const FloatView& y) = 0;
  // loss += weight * mean (q - y)^2; d_q = 2 (q - y) / rows.
  virtual void SquaredLoss(const FloatView& q, const FloatView& y, double weight, const FloatView& d_q,
                           const DoubleView& loss) = 0;
  // loss += weight * mean(x), and the gradient of that for x.
  virtual void WeightedMean(const FloatView& x, const DoubleView& weight, const FloatView& d_x,
                            const DoubleView& loss) = 0;
  // The mean of both critics' values, the smallest value, and the mean of |q0 - q1|.
  virtual void CriticValues(const FloatView& q0, const FloatView& q1, const DoubleView& mean, const DoubleView& least,
                            const DoubleView& gap) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_CRITIC_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
