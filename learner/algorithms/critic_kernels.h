// Losses and targets that all critics share. Targets y, and the values of one net, are [members, rows, 1]; values q of
// several nets are [members, nets, rows].
#ifndef DATACOM_LEARNER_ALGORITHMS_CRITIC_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_CRITIC_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

// The value of a pair of critics: min + larger (max - min). NaN if one of them is NaN.
struct TwinValues {
  FloatView q0, q1;
  FloatView larger;  // [members, 1, 1] share of the larger critic: 0 is the minimum, 1/2 the mean
};

// A step of the rows: y = clamp(scale reward + discount (1 - absorbing) v, least, most) with the value v of the next
// state. NaN stays NaN.
struct TargetStep {
  FloatView reward, absorbing;
  FloatView scale, least, most;  // [members, 1, 1]
  double discount = 0;
};

class CriticKernels : public KernelGroup {
 public:
  // The target of a step whose next state has the value of the pair - alpha log pi. log_alpha: [members, 1, 1]. Empty
  // log_pi: without the entropy.
  virtual void Target(const TargetStep& step, const TwinValues& next, const FloatView& log_pi,
                      const FloatView& log_alpha, const FloatView& y) = 0;
  // loss = mean (q - y)^2 over nets and rows; d_q = 2 (q - y) / rows, the gradient of each net's own mean.
  virtual void SquaredLoss(const FloatView& q, const FloatView& y, const FloatView& d_q, const DoubleView& loss) = 0;
  // loss += weight * mean(x), and the gradient of that for x.
  virtual void WeightedMean(const FloatView& x, const DoubleView& weight, const FloatView& d_x,
                            const DoubleView& loss) = 0;
  // The mean of all values, the smallest one, and the mean distance of the first net from the last, each divided by
  // scale.
  virtual void CriticValues(const FloatView& q, const DoubleView& scale, const DoubleView& mean,
                            const DoubleView& least, const DoubleView& gap) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_CRITIC_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
