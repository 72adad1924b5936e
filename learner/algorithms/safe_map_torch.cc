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
  void SafeMap(const SafeMapInput& in, const FloatView& u, const SafeMapOutput& out) override {
    const int64_t n = u.cols, q = in.f.cols, x = in.x_dot.cols;
    const at::Tensor k = Of(in.k), J = Of(in.J), J_q = J.narrow(2, 0, q);
    const at::Tensor mu = at::clamp_min(-k, 1e-5);
    const at::Tensor slack = at::clamp_max(at::expm1(Of(in.slack_beta) * mu), 1e5 - 1);
    const at::Tensor g = TimesMatrix(J_q, AsMatrix(Of(in.G), q, n));
    const at::Tensor drift = at::clamp_min((J_q * Of(in.f)).sum(2, true), 0);
    at::Tensor residual = drift + Of(in.gain) * (k + mu);
    if (x > 0) residual = residual + (J.narrow(2, q, x) * Of(in.x_dot)).sum(2, true);
    const at::Tensor norm = at::sqrt((g * g).sum(2, true) + slack * slack);
    const at::Tensor j = g / norm, j_s = slack / norm, share = 1 / (1 + j_s);
    const at::Tensor clipped = at::clamp(Of(u).to(at::kDouble), -1, 1);
    const at::Tensor raw = clipped - j * ((j * clipped).sum(2, true) * share + residual / norm);
    const at::Tensor scale = 1 / at::clamp_min(at::amax(at::abs(raw), 2, true), 1);
    const at::Tensor action = raw * scale;
    Of(out.record).copy_(at::cat({j, share, scale, action}, 2));
    Of(out.action).copy_(action);
    const at::Tensor log_det = (n - 1) * std::log1p(kLogDetRegularisation) + at::log(j_s + kLogDetRegularisation);
    Of(out.log_pi).sub_(at::maximum(log_det, Of(in.target_entropy)).to(at::kFloat));
  }

  void SafeMapGradient(const DoubleView& record, const FloatView& u, const FloatView& d_action,
                       const FloatView& d_u) override {
    const int64_t n = u.cols;
    const at::Tensor r = Of(record), j = r.narrow(2, 0, n), d = Of(d_action).to(at::kDouble);
    const at::Tensor along = (j * d).sum(2, true).mul_(r.narrow(2, n, 1));
    at::Tensor out = Of(d_u);
    at::mul_out(out, at::addcmul(d, j, along, /*value=*/-1), r.narrow(2, n + 1, 1));
    out.masked_fill_(at::abs(Of(u)).gt(1), 0);
  }
};

const TorchImpls::Register<SafeMapKernels, SafeMapTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
