#include "learner/algorithms/cost_kernels.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {
namespace {

class CostTorch : public TorchImpl<CostKernels> {
 public:
  using TorchImpl::TorchImpl;

  void CostTarget(const FloatView& cost, const FloatView& absorbing, const FloatView& next, double discount,
                  const FloatView& y) override {
    Of(y).copy_(at::clamp_min(Of(cost), 0) + discount * (1 - Of(absorbing)) * Of(next));
  }

  void CostRisk(const FloatView& mean, const FloatView& spread, const FloatView& margin,
                const FloatView& cvar) override {
    at::Tensor out = Of(cvar);
    at::addcmul_out(out, Of(mean), Of(margin), at::softplus(Of(spread)));
  }

  void CostRiskGradient(const FloatView& d_cvar, const FloatView& spread, const FloatView& margin,
                        const FloatView& d_spread) override {
    at::Tensor out = Of(d_spread);
    at::mul_out(out, Of(d_cvar) * Of(margin), at::sigmoid(Of(spread)));
  }

  void Multiplier(const FloatView& raw, const DoubleView& mean_cost, const DoubleView& limit, const DoubleView& damping,
                  const DoubleView& price, const FloatView& gradient) override {
    const at::Tensor slack = Of(limit) - Of(mean_cost);
    Of(price).copy_(at::softplus(Of(raw)).to(at::kDouble) - Of(damping) * slack);
    Of(gradient).copy_(at::sigmoid(Of(raw)).to(at::kDouble) * slack);
  }

  void AddPriced(const DoubleView& multiplier, const FloatView& d_cost, const FloatView& d_action) override {
    const auto size = [](const at::Tensor& x) { return at::abs(x).to(at::kDouble).sum({1, 2}, /*keepdim=*/true); };
    const at::Tensor cost = Of(d_cost), action = Of(d_action);
    const at::Tensor weight = Of(multiplier) * size(action) / at::clamp_min(size(cost), 1e-9);
    action.add_(at::where(Of(multiplier).ne(0), weight.to(at::kFloat) * cost, at::zeros_like(cost)));
  }

  void GaussianRisk(const FloatView& mean, const FloatView& log_std, const FloatView& mean_gradient,
                    const FloatView& log_std_gradient, const FloatView& margin, const DoubleView& delta,
                    const DoubleView& k, const DoubleView& J) override {
    const at::Tensor o = Of(mean), l = Of(log_std), clamped = at::clamp(l, -20, 2);
    const at::Tensor spread = at::exp(clamped).mul_(Of(margin));
    at::Tensor constraint = Of(k);
    at::sub_out(constraint, at::softplus(o).add_(spread), Of(delta));
    const at::Tensor log_std_slope = spread.masked_fill_(clamped.ne(l), 0);
    Of(J).copy_((at::sigmoid(o) * Of(mean_gradient)).addcmul_(log_std_slope, Of(log_std_gradient)));
  }

  void GaussianLoss(const FloatView& mean, const FloatView& spread, const GaussianTarget& target,
                    const FloatView& d_mean, const FloatView& d_spread, const DoubleView& loss) override {
    const bool feasibility = target.head == GaussianHead::kFeasibility;
    const double gamma = target.discount;
    const at::Tensor o = Of(mean), s = Of(spread), next = Of(target.next_mean), next_s = Of(target.next_spread);
    const at::Tensor cost = at::clamp_min(Of(target.cost), 0), left = at::rsub(Of(target.absorbing), 1).mul_(gamma);
    const at::Tensor value = feasibility ? at::softplus(o) : o;
    const at::Tensor y = at::addcmul(cost, left, feasibility ? at::softplus(next) : next);
    const at::Tensor mean_error = value - y, square = mean_error * mean_error;
    at::Tensor std, spread_slope, variance;  // variance: second moment of the target - value^2
    if (feasibility) {
      std = spread_slope = at::exp(s);
      const at::Tensor next_std = at::exp(next_s).mul_(left);
      variance = at::addcmul(y * y, value, value, /*value=*/-1).addcmul_(next_std, next_std).clamp_(1e-4, 1e8);
      variance = at::where(Of(target.absorbing).ne(0), square, variance);
    } else {
      const at::Tensor raw = at::softplus(s), next_std = at::softplus(next_s).clamp_(1e-4, 1e4).mul_(gamma);
      std = at::clamp(raw, 1e-4, 1e4), spread_slope = at::sigmoid(s).masked_fill_(std.ne(raw), 0);
      const at::Tensor ahead = at::add(cost, next, gamma);
      variance = at::addcmul(ahead * ahead, value, value, /*value=*/-1).addcmul_(next_std, next_std).clamp_(1e-8, 1e8);
    }
    const at::Tensor std_error = std - variance.sqrt_(), weight = Of(target.row_weight), twice = weight * 2;
    at::Tensor d_value = Of(d_mean), d_std = Of(d_spread), sum = Of(loss);
    at::mul_out(d_value, mean_error, twice);
    if (feasibility) d_value.mul_(at::sigmoid(o));
    at::mul_out(d_std, std_error * twice, spread_slope);
    at::sum_out(sum, at::addcmul(square, std_error, std_error).mul_(weight), 1, /*keepdim=*/true, at::kDouble);
  }
};

const TorchImpls::Register<CostKernels, CostTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
