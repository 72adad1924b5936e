#include "learner/algorithms/critic_kernels.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {
namespace {

class CriticTorch : public TorchImpl<CriticKernels> {
 public:
  using TorchImpl::TorchImpl;

  void Target(const TargetStep& step, const TwinValues& next, const FloatView& log_pi, const FloatView& log_alpha,
              const FloatView& y) override {
    const at::Tensor a = Of(next.q0), b = Of(next.q1);
    const at::Tensor value = at::lerp(at::minimum(a, b), at::maximum(a, b), Of(next.larger));
    if (log_pi.data != nullptr) value.addcmul_(at::exp(Of(log_alpha)), Of(log_pi), /*value=*/-1);
    const at::Tensor left = at::rsub(Of(step.absorbing), 1).mul_(step.discount);
    const at::Tensor sum = at::addcmul(Of(step.scale) * Of(step.reward), left, value);
    at::Tensor out = Of(y);
    at::minimum_out(out, at::maximum(sum, Of(step.least)), Of(step.most));
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
