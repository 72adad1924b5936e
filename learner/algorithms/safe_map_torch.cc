#include <cmath>

#include "learner/algorithms/safe_map_kernels.h"
#include "learner/algorithms/safe_map_row.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {
namespace {

class SafeMapTorch : public TorchImpl<SafeMapKernels> {
 public:
  using TorchImpl::TorchImpl;

  // The formulas of safe_map_row.h, on all rows at once.
  void State(const SafeMapInput& in, const DoubleView& map) override {
    const int64_t q = in.f.cols, n = in.G.cols / q, x = in.x_dot.cols;
    const at::Tensor k = Of(in.k), J = Of(in.J), J_q = J.narrow(2, 0, q);
    const at::Tensor mu = at::clamp_min(-k, 1e-5);
    const at::Tensor slack = at::expm1(Of(in.slack_beta) * mu).clamp_max_(1e5 - 1);
    const at::Tensor drift = (J_q * Of(in.f)).sum(2, true).clamp_min_(0);
    const at::Tensor residual = at::addcmul(drift, Of(in.gain), k + mu);
    if (x > 0) residual.add_((J.narrow(2, q, x) * Of(in.x_dot)).sum(2, true));
    const at::Tensor row = at::cat({TimesMatrix(J_q, AsMatrix(Of(in.G), q, n)), slack}, 2);
    const at::Tensor norm = at::linalg_vector_norm(row, 2, 2, /*keepdim=*/true), unit = row / norm;
    const at::Tensor j = unit.narrow(2, 0, n), j_s = unit.narrow(2, n, 1);
    const at::Tensor log_det = at::log(j_s + kLogDetRegularisation).add_((n - 1) * std::log1p(kLogDetRegularisation));
    at::Tensor out = Of(map);
    at::cat_out(out, {j, at::reciprocal(j_s + 1), residual / norm, at::maximum(log_det, Of(in.target_entropy))}, 2);
  }

  void Action(const DoubleView& map, const FloatView& u, const SafeMapOutput& out) override {
    const int64_t n = u.cols;
    const at::Tensor state = Of(map), j = state.narrow(2, 0, n);
    const at::Tensor clipped = Of(u).to(at::kDouble).clamp_(-1, 1);
    const at::Tensor push = at::addcmul(state.narrow(2, n + 1, 1), (j * clipped).sum(2, true), state.narrow(2, n, 1));
    const at::Tensor raw = at::addcmul(clipped, j, push, /*value=*/-1);
    at::Tensor action = Of(out.action), scale = Of(out.record);
    at::reciprocal_out(scale, at::linalg_vector_norm(raw, HUGE_VAL, 2, /*keepdim=*/true).clamp_min_(1));
    at::mul_out(action, raw, scale);
    Of(out.log_pi).sub_(state.narrow(2, n + 2, 1));
  }

  void Gradient(const DoubleView& map, const DoubleView& record, const FloatView& u, const FloatView& d_action,
                const FloatView& d_u) override {
    const int64_t n = u.cols;
    const at::Tensor state = Of(map), j = state.narrow(2, 0, n), d = Of(d_action).to(at::kDouble);
    const at::Tensor along = (j * d).sum(2, true).mul_(state.narrow(2, n, 1));
    at::Tensor out = Of(d_u);
    at::mul_out(out, at::addcmul(d, j, along, /*value=*/-1), Of(record));
    out.masked_fill_(at::abs(Of(u)).gt(1), 0);
  }
};

const TorchImpls::Register<SafeMapKernels, SafeMapTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
