// What TensorKernels watches in an update, and how it undoes a part of one.
#include "learner/nn/tensor_kernels.h"

namespace datacom::learner {
namespace {

void FindCalm(const at::Tensor& x, double limit, const at::Tensor& calm) {
  const at::Tensor within = at::abs(x).le(limit).flatten(1).all(1);
  calm.mul_(within.view({-1, 1, 1}));
}

void PutThoseBack(const at::Tensor& from, const at::Tensor& active, const at::Tensor& calm, const at::Tensor& to) {
  to.copy_(at::where(active.eq(0).logical_and(calm.eq(0)), from, to));
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

void TensorKernels::Copy(const DoubleView& from, const DoubleView& to) { Of(to).copy_(Of(from)); }

void TensorKernels::Calm(const FloatView& x, double limit, const DoubleView& calm) { FindCalm(Of(x), limit, Of(calm)); }
void TensorKernels::Calm(const DoubleView& x, double limit, const DoubleView& calm) {
  FindCalm(Of(x), limit, Of(calm));
}

void TensorKernels::CopyUnlessCalm(const FloatView& from, const DoubleView&, const FloatView& to) {
  Of(to).copy_(Of(from));
}
void TensorKernels::CopyUnlessCalm(const DoubleView& from, const DoubleView&, const DoubleView& to) { Copy(from, to); }

void TensorKernels::PutBack(const FloatView& from, const DoubleView& active, const DoubleView& calm,
                            const FloatView& to) {
  PutThoseBack(Of(from), Of(active), Of(calm), Of(to));
}
void TensorKernels::PutBack(const DoubleView& from, const DoubleView& active, const DoubleView& calm,
                            const DoubleView& to) {
  PutThoseBack(Of(from), Of(active), Of(calm), Of(to));
}

}  // namespace datacom::learner
