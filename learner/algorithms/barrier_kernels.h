// The loss of CBF-SAC's control barrier function (docs/algorithms.md 13.2).
#ifndef DATACOM_LEARNER_ALGORITHMS_BARRIER_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_BARRIER_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

// Inputs of the loss of a barrier V(q), [members, rows, ...].
struct BarrierInput {
  enum { kMargin, kSafeWeight, kUnsafeWeight, kRelaxationWeight, kPenalty, kDecay, kNumbers };
  FloatView value, slope;  // V and dV/dq
  DoubleView f, G;         // [.., q], [.., q * action]
  FloatView action, cost;  // the policy's, as stored; raw cost, the label
  ActionBox box;
  DoubleView numbers;  // [members, 1, kNumbers]
};

class BarrierKernels : public KernelGroup {
 public:
  // Loss [members, 1, 1] and gradients for V [members, rows, 1] and dV/dq. If no row has a label (safe, unsafe), its
  // term is 0.
  virtual void BarrierLoss(const BarrierInput& in, const FloatView& d_value, const FloatView& d_slope,
                           const DoubleView& loss) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_BARRIER_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
