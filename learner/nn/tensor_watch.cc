// What TensorKernels watches in an update, and how it undoes a part of one.
#include "learner/nn/tensor_kernels.h"

namespace datacom::learner {
namespace {

void CopyThoseInactive(const at::Tensor& from, const at::Tensor& active, const at::Tensor& to) {
  to.copy_(at::where(active.eq(0), from, to));
}

}  // namespace

void TensorKernels::GradientNorm(const FloatView& gradient, const DoubleView& norm, const DoubleView& active) {
  const at::Tensor length = at::sqrt(at::square(Of(gradient).to(at::kDouble)).sum(2, /*keepdim=*/true));
  Of(norm).copy_(length);
  Of(active).mul_(at::isfinite(length));
}

void TensorKernels::CriticValues(const FloatView& q0, const FloatView& q1, const DoubleView& mean,
                                 const DoubleView& least, const DoubleView& gap) {
  const at::Tensor a = Of(q0).to(at::kDouble), b = Of(q1).to(at::kDouble);
  Of(mean).copy_((a + b).mean(1, /*keepdim=*/true) / 2);
  Of(least).copy_(at::amin(at::minimum(a, b), 1, /*keepdim=*/true));
  Of(gap).copy_(at::abs(a - b).mean(1, /*keepdim=*/true));
}

void TensorKernels::AccumulateLeast(const DoubleView& value, const DoubleView& active, const DoubleView& least) {
  const at::Tensor smallest = Of(least.Cols(0, 1)), count = Of(least.Cols(1, 1)), now = Of(value);
  const at::Tensor on = Of(active).gt(0);
  const at::Tensor updated = at::where(count.gt(0), at::minimum(smallest, now), now);
  smallest.copy_(at::where(on, updated, smallest));
  count.add_(on);
}

void TensorKernels::Copy(const FloatView& from, const FloatView& to) { Of(to).copy_(Of(from)); }
void TensorKernels::Copy(const DoubleView& from, const DoubleView& to) { Of(to).copy_(Of(from)); }

void TensorKernels::CopyInactive(const FloatView& from, const DoubleView& active, const FloatView& to) {
  CopyThoseInactive(Of(from), Of(active), Of(to));
}
void TensorKernels::CopyInactive(const DoubleView& from, const DoubleView& active, const DoubleView& to) {
  CopyThoseInactive(Of(from), Of(active), Of(to));
}

}  // namespace datacom::learner
