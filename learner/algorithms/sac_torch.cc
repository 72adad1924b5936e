#include "learner/algorithms/sac_kernels.h"
#include "learner/algorithms/twin_torch.h"

namespace datacom::learner {
namespace {

constexpr double kHalfLogTwoPi = 0.918938533204672742;

class SacTorch : public TorchImpl<SacKernels> {
 public:
  using TorchImpl::TorchImpl;

  void SampleAction(const FloatView& mean, const FloatView& log_std, const FloatView& noise, const ActionBox& box,
                    const ActionSample& out) override {
    const at::Tensor l = at::clamp(Of(log_std), -20, 2), eps = Of(noise);
    const at::Tensor t = at::tanh(Of(mean) + at::exp(l) * eps);
    Of(out.tanh).copy_(t);
    Of(out.u).copy_(t * Of(box.half) + Of(box.centre));
    const at::Tensor terms = -0.5 * eps * eps - l - kHalfLogTwoPi - at::log(1 - t * t + 1e-6);
    Of(out.log_pi).copy_(terms.sum(2, /*keepdim=*/true));
  }

  void SampleActionGradient(const FloatView& log_std, const FloatView& noise, const ActionBox& box,
                            const ActionSample& sample, const FloatView& d_u, const FloatView& log_alpha,
                            const FloatView& d_mean, const FloatView& d_log_std) override {
    const at::Tensor l = Of(log_std), t = Of(sample.tanh), slope = 1 - t * t;
    const at::Tensor d_log_pi = at::exp(Of(log_alpha)) / log_std.rows;
    const at::Tensor d_raw = Of(d_u) * Of(box.half) * slope + d_log_pi * 2 * t * slope / (slope + 1e-6);
    const at::Tensor inside = l.ge(-20).logical_and(l.le(2));
    Of(d_mean).copy_(d_raw);
    Of(d_log_std).copy_(at::where(inside, d_raw * at::exp(l) * Of(noise) - d_log_pi, at::zeros_like(l)));
  }

  void ActorLoss(const TwinValues& q, const FloatView& log_pi, const FloatView& log_alpha, const FloatView& d_q0,
                 const FloatView& d_q1, const DoubleView& loss, const DoubleView& mean_log_pi) override {
    const at::Tensor a = Of(q.q0), b = Of(q.q1), larger = LargerShare(q, device()), smaller = 1 - larger;
    const at::Tensor second = b.lt(a).logical_or(at::isnan(b)).to(at::kFloat);
    Of(d_q0).copy_(-(smaller + second * (larger - smaller)) / log_pi.rows);
    Of(d_q1).copy_(-(larger + second * (smaller - larger)) / log_pi.rows);
    const at::Tensor mean = MeanRows(Of(log_pi));
    Of(mean_log_pi).copy_(mean);
    Of(loss).copy_(at::exp(Of(log_alpha).to(at::kDouble)) * mean - MeanRows(ValueOf(q, device())));
  }

  void Imitate(const FloatView& u, const FloatView& command, const DoubleView& weight, const ActionBox& box,
               const FloatView& d_u, const DoubleView& loss) override {
    const at::Tensor half = Of(box.half), weights = Of(weight);
    const at::Tensor apart = (Of(u) - Of(command)) / half;
    const at::Tensor distance = at::where(weights.eq(0), at::zeros_like(apart), apart);  // commands of weight 0 are old
    Of(d_u).add_((weights / u.rows).to(at::kFloat) * 2 * distance / half);
    Of(loss).add_(weights * MeanRows((distance * distance).sum(2, /*keepdim=*/true)));
  }

  void TemperatureGradient(const DoubleView& mean_log_pi, const DoubleView& target_entropy, const FloatView& log_alpha,
                           const FloatView& gradient) override {
    Of(gradient).copy_(-at::exp(Of(log_alpha).to(at::kDouble)) * (Of(mean_log_pi) + Of(target_entropy)));
  }

  void SoftTarget(const TargetStep& step, const TwinValues& next, const FloatView& log_pi, const FloatView& log_alpha,
                  const FloatView& y) override {
    const at::Tensor value = ValueOf(next, device()) - at::exp(Of(log_alpha)) * Of(log_pi);
    Of(y).copy_(TargetOf(step, value, device()));
  }
};

const TorchImpls::Register<SacKernels, SacTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
