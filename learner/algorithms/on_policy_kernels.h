// The arithmetic of PPOLag and RCPO on the rows of an epoch (docs/algorithms.md 18): advantages,
// minibatches, and the terms that all their gradients share. Rows are in the order of time, lane after lane.
#ifndef DATACOM_LEARNER_ALGORITHMS_ON_POLICY_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_ON_POLICY_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

// The inputs of generalised advantage estimation, [members, rows, 1].
struct PathRows {
  FloatView signal;               // reward or raw cost
  FloatView absorbing, path_end;  // 0/1; the last row counts as the end of a path
  FloatView value, next_value;    // V(s); V(s'), read only at path ends
};

class OnPolicyKernels : public KernelGroup {
 public:
  // With x_t = max(signal, least) and v'_t = V of the next row, or next_value at a path's end:
  //   d_t = x_t + discount (1 - absorbing_t) v'_t - value_t
  //   advantage_t = d_t + discount lambda advantage_(t+1), without the second term at a path's end
  //   target_t = advantage_t + value_t
  // lambda: [members, 1, 1].
  virtual void Advantages(const PathRows& rows, double least, double discount, const DoubleView& lambda,
                          const FloatView& advantage, const FloatView& target) = 0;
  // x <- (x - mean) / (std + 1e-8) with the standard deviation that divides by the number of rows.
  virtual void Standardise(const FloatView& x) = 0;
  virtual void Centre(const FloatView& x) = 0;  // x <- x - mean
  // out = (reward - multiplier cost) / (1 + multiplier). multiplier: [members, 1, 1].
  virtual void PriceAdvantages(const FloatView& reward, const FloatView& cost, const DoubleView& multiplier,
                               const FloatView& out) = 0;
  virtual void Copy(const FloatView& from, const FloatView& to) = 0;
  // out [members, n, cols] = the rows with these indices. index: [members, n, 1], whole numbers.
  virtual void Gather(const FloatView& rows, const DoubleView& index, const FloatView& out) = 0;
  // Adds weight * sum of squares of the parameters to a loss, and its gradient to theirs. Then rounds the loss to
  // float32, so that a loss beyond float32's range is not finite. parameters, gradient: [members, 1, n].
  virtual void AddSquares(const FloatView& parameters, const DoubleView& weight, const FloatView& gradient,
                          const DoubleView& loss) = 0;
  // gradient *= min(1, limit / (norm + 1e-6)).
  virtual void Shorten(const DoubleView& norm, const DoubleView& limit, const FloatView& gradient) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_ON_POLICY_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
