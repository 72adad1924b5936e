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

  void CostRisk(const FloatView& mean, const FloatView& spread, const DoubleView& margin,
                const FloatView& cvar) override {
    Of(cvar).copy_(Of(mean) + Of(margin).to(at::kFloat) * at::softplus(Of(spread)));
  }

  void CostRiskGradient(const FloatView& d_cvar, const FloatView& spread, const DoubleView& margin,
                        const FloatView& d_spread) override {
    Of(d_spread).copy_(Of(d_cvar) * Of(margin).to(at::kFloat) * at::sigmoid(Of(spread)));
  }

  void Multiplier(const FloatView& raw, const DoubleView& mean_cost, const DoubleView& limit, const DoubleView& damping,
                  const DoubleView& price, const FloatView& gradient) override {
    const at::Tensor slack = Of(limit) - Of(mean_cost);
    Of(price).copy_(at::softplus(Of(raw)).to(at::kDouble) - Of(damping) * slack);
    Of(gradient).copy_(at::sigmoid(Of(raw)).to(at::kDouble) * slack);
  }
};

const TorchImpls::Register<CostKernels, CostTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
