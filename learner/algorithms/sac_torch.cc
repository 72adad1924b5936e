#include "learner/algorithms/sac_kernels.h"
#include "learner/nn/torch/torch_impl.h"

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

  void ActorLoss(const FloatView& q0, const FloatView& q1, const FloatView& log_pi, const FloatView& log_alpha,
                 const FloatView& d_q0, const FloatView& d_q1, const DoubleView& loss,
                 const DoubleView& mean_log_pi) override {
    const at::Tensor a = Of(q0), b = Of(q1);
    const at::Tensor second = b.lt(a).logical_or(at::isnan(b)).to(at::kFloat);
    Of(d_q0).copy_((second - 1) / q0.rows);
    Of(d_q1).copy_(-second / q0.rows);
    const at::Tensor mean = MeanRows(Of(log_pi));
    Of(mean_log_pi).copy_(mean);
    Of(loss).copy_(at::exp(Of(log_alpha).to(at::kDouble)) * mean - MeanRows(at::minimum(a, b)));
  }

  void TemperatureGradient(const DoubleView& mean_log_pi, const DoubleView& target_entropy, const FloatView& log_alpha,
                           const FloatView& gradient) override {
    Of(gradient).copy_(-at::exp(Of(log_alpha).to(at::kDouble)) * (Of(mean_log_pi) + Of(target_entropy)));
  }

  void SoftTarget(const FloatView& reward, const FloatView& absorbing, const FloatView& q0, const FloatView& q1,
                  const FloatView& log_pi, const FloatView& log_alpha, double discount, const FloatView& y) override {
    const at::Tensor soft = at::minimum(Of(q0), Of(q1)) - at::exp(Of(log_alpha)) * Of(log_pi);
    Of(y).copy_(Of(reward) + discount * (1 - Of(absorbing)) * soft);
  }
};

const TorchImpls::Register<SacKernels, SacTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
