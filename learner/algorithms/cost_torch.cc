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
    const double gamma = target.discount, floor = feasibility ? 1e-4 : 1e-8;
    const at::Tensor o = Of(mean), s = Of(spread), next_s = Of(target.next_spread), zero = at::zeros_like(o);
    const at::Tensor cost = at::clamp_min(Of(target.cost), 0), ends = Of(target.absorbing).ne(0);
    at::Tensor value = o, slope = at::ones_like(o), next = Of(target.next_mean), std, spread_slope, next_variance;
    if (feasibility) {
      value = at::softplus(o), slope = at::sigmoid(o);
      std = spread_slope = at::exp(s);
      next = at::softplus(next), next_variance = at::exp(2 * next_s);
    } else {
      const at::Tensor raw = at::softplus(s);
      std = at::clamp(raw, 1e-4, 1e4), spread_slope = at::where(std.eq(raw), at::sigmoid(s), zero);
      next_variance = at::clamp(at::square(at::softplus(next_s)), 1e-8, 1e8);
    }
    const at::Tensor y = at::where(ends, cost, cost + gamma * next);
    const at::Tensor second = cost * cost + 2 * gamma * cost * next + gamma * gamma * (next_variance + next * next);
    at::Tensor variance = at::clamp(second - value * value, floor, 1e8);
    if (feasibility) variance = at::where(ends, (cost - value) * (cost - value), variance);
    const at::Tensor mean_error = value - y, std_error = std - at::sqrt(variance);
    const at::Tensor present = Of(target.failure_weight).gt(0);  // [members, 1, 1]
    const int64_t failures = mean.rows - target.main_rows;
    const at::Tensor count = target.main_rows + failures * present.to(at::kDouble);
    const at::Tensor main = at::arange(mean.rows, o.options()).lt(target.main_rows).view({1, mean.rows, 1});
    const at::Tensor used = main.logical_or(present);
    const at::Tensor scale = (2 / count).to(at::kFloat);
    Of(d_mean).copy_(at::where(used, scale * mean_error * slope, zero));
    Of(d_spread).copy_(at::where(used, scale * std_error * spread_slope, zero));
    const at::Tensor squares = at::where(used, mean_error * mean_error + std_error * std_error, zero);
    Of(loss).copy_(squares.to(at::kDouble).sum(1, true) / count);
  }
};

const TorchImpls::Register<CostKernels, CostTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
