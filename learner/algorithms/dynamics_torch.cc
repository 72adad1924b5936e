#include "learner/algorithms/dynamics_kernels.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {
namespace {

constexpr double kLeast = -10, kLargest = 0.5;

class DynamicsTorch : public TorchImpl<DynamicsKernels> {
 public:
  using TorchImpl::TorchImpl;

  void Likelihood(const FloatView& out, const FloatView& target, const FloatView& weight, const FloatView& d_out,
                  const DoubleView& loss) override {
    const int d = target.cols;
    const at::Tensor l = Of(out.Cols(d, d)), apart = Of(out.Cols(0, d)) - Of(target);
    const at::Tensor upper = kLargest - l, lower = kLargest - at::softplus(upper) - kLeast;
    const at::Tensor v = kLeast + at::softplus(lower), weighted = apart * at::exp(-v);
    const at::Tensor rows = Of(weight).sum(1, /*keepdim=*/true);
    const at::Tensor part = Of(weight) / (at::clamp_min(rows, 1) * d);
    Of(d_out.Cols(0, d)).copy_(part * 2 * weighted);
    Of(d_out.Cols(d, d)).copy_(part * (1 - apart * weighted) * at::sigmoid(upper) * at::sigmoid(lower));
    Of(loss).add_((part * (apart * weighted + v)).to(at::kDouble).sum({1, 2}, /*keepdim=*/true));
  }

  void SquaredError(const FloatView& out, const FloatView& target, const FloatView& weight,
                    const DoubleView& sum) override {
    const at::Tensor square = at::square(Of(out.Cols(0, target.cols)) - Of(target));
    const at::Tensor row = square.sum(2, /*keepdim=*/true) / static_cast<double>(target.cols);
    Of(sum).add_((Of(weight) * row).to(at::kDouble).sum(1, /*keepdim=*/true));
  }

  void Add(const DoubleView& value, const DoubleView& sum) override { Of(sum).add_(Of(value)); }
};

const TorchImpls::Register<DynamicsKernels, DynamicsTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
