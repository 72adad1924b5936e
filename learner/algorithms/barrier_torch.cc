#include "learner/algorithms/barrier_kernels.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {
namespace {

class BarrierTorch : public TorchImpl<BarrierKernels> {
 public:
  using TorchImpl::TorchImpl;

  // The formulas of barrier_cpu.cc, on all rows at once.
  void BarrierLoss(const BarrierInput& in, const FloatView& d_value, const FloatView& d_slope,
                   const DoubleView& loss) override {
    using In = BarrierInput;
    const int64_t n = in.action.cols, q = in.slope.cols, rows = in.value.rows;
    const at::Tensor numbers = Of(in.numbers);
    const auto number = [&numbers](int i) { return numbers.narrow(2, i, 1); };
    const at::Tensor V = Of(in.value).to(at::kDouble), J = Of(in.slope).to(at::kDouble), f = Of(in.f);
    const at::Tensor G = AsMatrix(Of(in.G), q, n), half = Of(in.box.half).to(at::kDouble);
    const at::Tensor low = Of(in.box.centre) - half, high = Of(in.box.centre) + half;
    const at::Tensor unsafe = Of(in.cost).gt(0).to(at::kDouble), safe = 1 - unsafe;
    const auto share = [&](int weight, const at::Tensor& group) {
      return number(weight) * group / at::clamp_min(group.sum(1, /*keepdim=*/true), 1);
    };
    const at::Tensor safe_share = share(In::kSafeWeight, safe), unsafe_share = share(In::kUnsafeWeight, unsafe);
    const at::Tensor safe_excess = at::relu(number(In::kMargin) + V), unsafe_excess = at::relu(number(In::kMargin) - V);

    const at::Tensor L = TimesMatrix(J, G), step = number(In::kPenalty) / 2 * L;
    const at::Tensor wanted = Of(in.action) - step, action = at::maximum(at::minimum(wanted, high), low);
    const at::Tensor phi = number(In::kDecay) * V + (J * f).sum(2, /*keepdim=*/true) + (L * action).sum(2, true);
    const at::Tensor relaxed = (number(In::kRelaxationWeight) / rows) * phi.gt(0).to(at::kDouble);
    const at::Tensor inside = action.eq(wanted).to(at::kDouble);
    const at::Tensor d_L = action - inside * step;
    const at::Tensor d_J = relaxed * (f + TimesMatrix(d_L, G.transpose(2, 3)));
    Of(d_slope).copy_(d_J);
    Of(d_value).copy_(safe_share * safe_excess.gt(0) - unsafe_share * unsafe_excess.gt(0) +
                      relaxed * number(In::kDecay));
    const at::Tensor relaxation = at::relu(phi) * (number(In::kRelaxationWeight) / rows);
    Of(loss).copy_((safe_share * safe_excess + unsafe_share * unsafe_excess + relaxation).sum(1, /*keepdim=*/true));
  }
};

const TorchImpls::Register<BarrierKernels, BarrierTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
