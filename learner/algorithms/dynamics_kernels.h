// The loss of learned dynamics (docs/algorithms.md 19.1): a Gaussian whose log-variance is softly bounded.
#ifndef DATACOM_LEARNER_ALGORITHMS_DYNAMICS_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_DYNAMICS_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

// out: [members, rows, 2 d], linear: means, then raw log-variances l. target: [members, rows, d]. weight: [members,
// rows, 1], 1 for a row that counts and 0 for one that does not.
class DynamicsKernels : public KernelGroup {
 public:
  // v = -10 + softplus(10 + 0.5 - softplus(0.5 - l)). loss += mean of (mean - target)^2 exp(-v) + v over the rows that
  // count and their d numbers, and the gradient of that for out. Without such a row both stay 0.
  virtual void Likelihood(const FloatView& out, const FloatView& target, const FloatView& weight,
                          const FloatView& d_out, const DoubleView& loss) = 0;
  // sum += the sum over the rows that count of the mean of (mean - target)^2.
  virtual void SquaredError(const FloatView& out, const FloatView& target, const FloatView& weight,
                            const DoubleView& sum) = 0;
  virtual void Add(const DoubleView& value, const DoubleView& sum) = 0;  // sum += value
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_DYNAMICS_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
