#include "learner/algorithms/surrogate_kernels.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {
namespace {

constexpr double kHalfLogTwoPi = 0.918938533204672742;

class SurrogateTorch : public TorchImpl<SurrogateKernels> {
 public:
  using TorchImpl::TorchImpl;

  void SurrogateLoss(const PolicyOutput& policy, const ActedRows& rows, const DoubleView& clip, double share, bool add,
                     const FloatView& d_mean, const FloatView& d_log_std, const DoubleView& loss) override {
    const at::Tensor log_std = Of(policy.log_std), apart = Of(rows.action) - Of(policy.mean), A = Of(rows.advantage);
    const at::Tensor inverse = at::exp(-2 * log_std), low = (1 - Of(clip)).to(at::kFloat),
                     high = (1 + Of(clip)).to(at::kFloat);
    const at::Tensor terms = -0.5 * apart * apart * inverse - log_std - kHalfLogTwoPi;
    const at::Tensor ratio = at::exp(terms.sum(2, /*keepdim=*/true) - Of(rows.log_prob));
    const at::Tensor gains = A.gt(0), clipped = at::where(gains, ratio.gt(high), ratio.lt(low));
    const at::Tensor bound = at::where(gains, high.expand_as(A), low.expand_as(A));
    const at::Tensor sum = at::where(clipped, A * bound, ratio * A).to(at::kDouble).sum(1, /*keepdim=*/true);
    const at::Tensor d = at::where(clipped, at::zeros_like(A), -share * ratio * A);
    const at::Tensor d_std = (d * (apart * apart * inverse - 1)).sum(1, /*keepdim=*/true);
    Of(d_mean).copy_(d * apart * inverse);
    Of(d_log_std).copy_(add ? Of(d_log_std) + d_std : d_std);
    Of(loss).copy_((add ? Of(loss) - share * sum : -share * sum).to(at::kFloat));
  }

  void AddDivergence(const PolicyOutput& before, const PolicyOutput& after, double share,
                     const DoubleView& sum) override {
    const auto wide = [this](const FloatView& view) { return Of(view).to(at::kDouble); };
    const at::Tensor old_log = wide(before.log_std), new_log = wide(after.log_std);
    const at::Tensor half = 0.5 * at::exp(-2 * new_log), each = new_log - old_log + half * at::exp(2 * old_log) - 0.5;
    const at::Tensor squares = at::square(wide(after.mean) - wide(before.mean)).sum(1, /*keepdim=*/true);
    Of(sum).add_(share * (static_cast<double>(after.mean.rows) * each + half * squares).sum(2, /*keepdim=*/true));
  }

  void StopBeyond(const DoubleView& divergence, const DoubleView& limit, const DoubleView& active,
                  const DoubleView& stopped) override {
    const at::Tensor value = Of(divergence), on = Of(active).gt(0), finite = at::isfinite(value);
    const at::Tensor goes_on = finite.logical_and(value.gt(Of(limit)).eq(0));
    Of(stopped).add_(on.logical_and(finite).logical_and(goes_on.eq(0)));
    Of(active).mul_(goes_on);
  }

  void Resume(const DoubleView& stopped, const DoubleView& active) override {
    Of(active).copy_(at::maximum(Of(active), Of(stopped)));
    Of(stopped).zero_();
  }
};

const TorchImpls::Register<SurrogateKernels, SurrogateTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
