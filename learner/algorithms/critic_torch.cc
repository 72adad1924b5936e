#include "learner/algorithms/twin_torch.h"

namespace datacom::learner {
namespace {

class CriticTorch : public TorchImpl<CriticKernels> {
 public:
  using TorchImpl::TorchImpl;

  void TwinTarget(const TargetStep& step, const TwinValues& next, const FloatView& y) override {
    WriteTarget(step, ValueOf(next, device()), y, device());
  }

  void SquaredLoss(const FloatView& q, const FloatView& y, const FloatView& d_q, const DoubleView& loss) override {
    at::Tensor error = Of(d_q), mean = Of(loss);
    at::sub_out(error, Of(q), Of(y).transpose(1, 2));
    at::mean_out(mean, error * error, at::IntArrayRef({1, 2}), /*keepdim=*/true, at::kDouble);
    error.mul_(2.0 / q.cols);
  }

  void WeightedMean(const FloatView& x, const DoubleView& weight, const FloatView& d_x,
                    const DoubleView& loss) override {
    Of(d_x).copy_((Of(weight) / x.rows).expand({x.members, x.rows, 1}));
    Of(loss).add_(Of(weight) * MeanRows(Of(x)));
  }

  void CriticValues(const FloatView& q, const DoubleView& scale, const DoubleView& mean, const DoubleView& least,
                    const DoubleView& gap) override {
    const at::Tensor values = Of(q).to(at::kDouble);
    const at::Tensor apart = (values.narrow(1, 0, 1) - values.narrow(1, q.rows - 1, 1)).abs_();
    at::Tensor means = Of(mean), smallest = Of(least), gaps = Of(gap);
    at::div_out(means, values.mean({1, 2}, /*keepdim=*/true), Of(scale));
    at::div_out(smallest, at::amin(values, {1, 2}, /*keepdim=*/true), Of(scale));
    at::div_out(gaps, apart.mean({1, 2}, /*keepdim=*/true), Of(scale));
  }
};

const TorchImpls::Register<CriticKernels, CriticTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
