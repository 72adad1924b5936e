// Optimisers of TorchKernels, their statistics, and the copies that undo a step.
#include "learner/nn/torch/torch_kernels.h"

namespace datacom::learner {
namespace {

void RestoreMembers(const at::Tensor& from, const at::Tensor& active, const at::Tensor& to) {
  to.copy_(at::where(active.eq(0), from, to));
}

}  // namespace

void TorchKernels::Adam(const AdamRange& range) {
  const at::Tensor gradient = Of(range.gradients), parameters = Of(range.parameters);
  const at::Tensor active = Of(range.active), steps = Of(range.steps);
  const at::Tensor on = active.gt(0);
  steps.add_(active);
  const at::Tensor step_size = (Of(range.learning_rate) / (1 - at::pow(0.9, steps))).to(at::kFloat);
  const at::Tensor root = at::rsqrt(1 - at::pow(0.999, steps)).to(at::kFloat);
  const at::Tensor first = Of(range.first_moment), second = Of(range.second_moment);
  const at::Tensor new_first = first * 0.9 + gradient * 0.1;
  const at::Tensor new_second = second * 0.999 + gradient * gradient * 0.001;
  const at::Tensor moved = parameters - step_size * new_first / (at::sqrt(new_second) * root + 1e-8);
  first.copy_(at::where(on, new_first, first));
  second.copy_(at::where(on, new_second, second));
  parameters.copy_(at::where(on, moved, parameters));
}

void TorchKernels::Polyak(const FloatView& source, double tau, const DoubleView& active, const FloatView& target) {
  const at::Tensor to = Of(target);
  to.copy_(at::where(Of(active).gt(0), Of(source) * tau + to * (1 - tau), to));
}

void TorchKernels::DeactivateUnlessFinite(const DoubleView& value, const DoubleView& active) {
  Of(active).mul_(at::isfinite(Of(value)));
}

void TorchKernels::SetZero(const DoubleView& value) { Of(value).zero_(); }

void TorchKernels::RowMean(const DoubleView& rows, const DoubleView& mean) { Of(mean).copy_(MeanRows(Of(rows))); }

void TorchKernels::RowMean(const FloatView& rows, const DoubleView& mean) { Of(mean).copy_(MeanRows(Of(rows))); }

void TorchKernels::Accumulate(const DoubleView& value, double sign, const DoubleView& active, const DoubleView& sum) {
  const at::Tensor on = Of(active).gt(0), total = Of(sum);
  const at::Tensor added = at::cat({sign * Of(value), at::ones_like(Of(value))}, 2);
  total.copy_(at::where(on, total + added, total));
}

void TorchKernels::GradientNorm(const FloatView& gradient, const DoubleView& norm, const DoubleView& active) {
  const at::Tensor length = at::sqrt(at::square(Of(gradient).to(at::kDouble)).sum(2, /*keepdim=*/true));
  Of(norm).copy_(length);
  Of(active).mul_(at::isfinite(length));
}

void TorchKernels::AccumulateLeast(const DoubleView& value, const DoubleView& active, const DoubleView& least) {
  const at::Tensor smallest = Of(least.Cols(0, 1)), count = Of(least.Cols(1, 1)), now = Of(value);
  const at::Tensor on = Of(active).gt(0);
  const at::Tensor updated = at::where(count.gt(0), at::minimum(smallest, now), now);
  smallest.copy_(at::where(on, updated, smallest));
  count.add_(on);
}

void TorchKernels::Copy(const FloatView& from, const FloatView& to) { Of(to).copy_(Of(from)); }
void TorchKernels::Copy(const DoubleView& from, const DoubleView& to) { Of(to).copy_(Of(from)); }

void TorchKernels::Restore(const FloatView& from, const DoubleView& active, const FloatView& to) {
  RestoreMembers(Of(from), Of(active), Of(to));
}
void TorchKernels::Restore(const DoubleView& from, const DoubleView& active, const DoubleView& to) {
  RestoreMembers(Of(from), Of(active), Of(to));
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
