// The loss of CBF-SAC's control barrier function (learner/algorithms/README.md 13.2).
#ifndef DATACOM_LEARNER_ALGORITHMS_BARRIER_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_BARRIER_KERNELS_H_

#include "learner/algorithms/action_box.h"
#include "learner/nn/kernels.h"

namespace datacom::learner {

// What the loss of a barrier V(q) reads. [members, rows, ...].
struct BarrierInput {
  enum { kMargin, kSafeWeight, kUnsafeWeight, kRelaxationWeight, kPenalty, kDecay, kNumbers };
  FloatView value, slope;  // V and dV/dq
  DoubleView f, G;         // [.., q], [.., q * action]
  FloatView action, cost;  // as chosen and stored; raw, the label
  ActionBox box;
  DoubleView numbers;  // [members, 1, kNumbers]
};

class BarrierKernels : public KernelGroup {
 public:
  // Loss [members, 1, 1] and gradients for V [members, rows, 1] and dV/dq. A label that no row has adds nothing.
  virtual void BarrierLoss(const BarrierInput& in, const FloatView& d_value, const FloatView& d_slope,
                           const DoubleView& loss) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_BARRIER_KERNELS_H_
