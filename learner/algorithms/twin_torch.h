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

inline at::Tensor TargetOf(const TargetStep& step, const at::Tensor& next_value, const at::Device& device) {
  const at::Tensor scale = AsTensor(step.scale, device);
  const at::Tensor left = step.discount * (1 - AsTensor(step.absorbing, device));
  const at::Tensor y = scale.to(at::kFloat) * AsTensor(step.reward, device) + left * next_value;
  const at::Tensor least = (scale * AsTensor(step.least, device)).to(at::kFloat);
  const at::Tensor most = (scale * AsTensor(step.most, device)).to(at::kFloat);
  return at::minimum(at::maximum(y, least), most);
}

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_TWIN_TORCH_H_
// SPDX-License-Identifier: Apache-2.0
