// SafeLayerTD3's deterministic policy and the linear cost model of its safety layer (docs/algorithms.md 12).
// Actions: [members, rows, action].
#ifndef DATACOM_LEARNER_ALGORITHMS_SAFE_LAYER_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_SAFE_LAYER_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

class SafeLayerKernels : public KernelGroup {
 public:
  // action = tanh(raw) half + centre.
  virtual void DeterministicAction(const FloatView& raw, const ActionBox& box, const FloatView& action) = 0;
  // scaled = action / half: the input of the critics.
  virtual void ActionInHalfRanges(const FloatView& action, const ActionBox& box, const FloatView& scaled) = 0;
  // Computes the gradient for raw from the gradient for the scaled action.
  virtual void DeterministicActionGradient(const FloatView& action, const ActionBox& box, const FloatView& d_scaled,
                                           const FloatView& d_raw) = 0;
  // In place: action + clip(std noise, +-bound), clipped to the box. std, bound: [members, 1, 1].
  virtual void SmoothAction(const FloatView& noise, const DoubleView& std, const DoubleView& bound,
                            const ActionBox& box, const FloatView& action) = 0;
  // prediction = previous + <slope, action> of the cost [members, rows, 1], its mean squared error and the gradient for
  // slope.
  virtual void LinearCostLoss(const FloatView& slope, const FloatView& action, const FloatView& previous,
                              const FloatView& cost, const FloatView& prediction, const FloatView& d_slope,
                              const DoubleView& loss) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_SAFE_LAYER_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
