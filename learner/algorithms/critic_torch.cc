#include "learner/algorithms/twin_torch.h"

namespace datacom::learner {
namespace {

class CriticTorch : public TorchImpl<CriticKernels> {
 public:
  using TorchImpl::TorchImpl;

  void TwinTarget(const TargetStep& step, const TwinValues& next, const FloatView& y) override {
    WriteTarget(step, ValueOf(next, device()), y, device());
  }

  void SquaredLoss(const FloatView& q, const FloatView& y, double weight, const FloatView& d_q,
                   const DoubleView& loss) override {
    const at::Tensor error = Of(q) - Of(y);
    Of(d_q).copy_(2 * error / q.rows);
    Of(loss).add_(weight * MeanRows(error * error));
  }

  void WeightedMean(const FloatView& x, const DoubleView& weight, const FloatView& d_x,
                    const DoubleView& loss) override {
    Of(d_x).copy_((Of(weight) / x.rows).expand({x.members, x.rows, 1}));
    Of(loss).add_(Of(weight) * MeanRows(Of(x)));
  }

  void CriticValues(const FloatView& q0, const FloatView& q1, const DoubleView& scale, const DoubleView& mean,
                    const DoubleView& least, const DoubleView& gap) override {
    const at::Tensor a = Of(q0).to(at::kDouble), b = Of(q1).to(at::kDouble);
    Of(mean).copy_((a + b).mean(1, /*keepdim=*/true) / 2 / Of(scale));
    Of(least).copy_(at::amin(at::minimum(a, b), 1, /*keepdim=*/true) / Of(scale));
    Of(gap).copy_(at::abs(a - b).mean(1, /*keepdim=*/true) / Of(scale));
  }
};

const TorchImpls::Register<CriticKernels, CriticTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
