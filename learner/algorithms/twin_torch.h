// The parts of critic_kernels.h as LibTorch's operations: values and targets, [members, rows, 1], in float32.
#ifndef DATACOM_LEARNER_ALGORITHMS_TWIN_TORCH_H_
#define DATACOM_LEARNER_ALGORITHMS_TWIN_TORCH_H_

#include "learner/algorithms/critic_kernels.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {

inline at::Tensor ValueOf(const TwinValues& twins, const at::Device& device) {
  const at::Tensor a = AsTensor(twins.q0, device), b = AsTensor(twins.q1, device);
  return at::lerp(at::minimum(a, b), at::maximum(a, b), AsTensor(twins.larger, device));
}

// Writes the target y of a step whose next state has this value.
inline void WriteTarget(const TargetStep& step, const at::Tensor& next_value, const FloatView& y,
                        const at::Device& device) {
  const at::Tensor left = at::rsub(AsTensor(step.absorbing, device), 1).mul_(step.discount);
  const at::Tensor reward = AsTensor(step.scale, device) * AsTensor(step.reward, device);
  const at::Tensor sum = at::addcmul(reward, left, next_value);
  at::Tensor out = AsTensor(y, device);
  at::minimum_out(out, at::maximum(sum, AsTensor(step.least, device)), AsTensor(step.most, device));
}

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_TWIN_TORCH_H_
// SPDX-License-Identifier: Apache-2.0
