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
    at::Tensor t = Of(out.tanh), u = Of(out.u), log_pi = Of(out.log_pi);
    at::tanh_out(t, at::addcmul(Of(mean), at::exp(l), eps));
    at::addcmul_out(u, Of(box.centre), t, Of(box.half));
    const at::Tensor terms = at::addcmul(l, eps, eps, 0.5).add_(at::rsub(t * t, 1).add_(1e-6).log_());
    at::sum_out(log_pi, at::rsub(terms, -kHalfLogTwoPi), 2, /*keepdim=*/true);
  }

  void SampleActionGradient(const FloatView& log_std, const FloatView& noise, const ActionBox& box,
                            const ActionSample& sample, const FloatView& d_u, const FloatView& log_alpha,
                            const FloatView& d_mean, const FloatView& d_log_std) override {
    const at::Tensor l = Of(log_std), t = Of(sample.tanh), slope = at::rsub(t * t, 1);
    const at::Tensor d_log_pi = at::exp(Of(log_alpha)).div_(log_std.rows);
    at::Tensor d_raw = Of(d_mean), d_l = Of(d_log_std);
    at::mul_out(d_raw, Of(d_u), Of(box.half) * slope);
    d_raw.addcdiv_(t * slope * d_log_pi, slope + 1e-6, 2);
    const at::Tensor outside = at::clamp(l, -20, 2).ne(l);
    at::mul_out(d_l, d_raw, at::exp(l));
    d_l.mul_(Of(noise)).sub_(d_log_pi).masked_fill_(outside, 0);
  }

  void ActorLoss(const TwinValues& q, const FloatView& log_pi, const FloatView& log_alpha, const FloatView& d_q0,
                 const FloatView& d_q1, const DoubleView& loss, const DoubleView& mean_log_pi) override {
    const double share = -1.0 / log_pi.rows;
    const at::Tensor a = Of(q.q0), b = Of(q.q1), larger = Of(q.larger) * share, smaller = at::rsub(larger, share);
    const at::Tensor first = a.le(b);  // where the first critic is the smaller one
    at::Tensor d_a = Of(d_q0), d_b = Of(d_q1), mean = Of(mean_log_pi), sum = Of(loss);
    at::where_out(d_a, first, smaller, larger);
    at::where_out(d_b, first, larger, smaller);
    at::mean_out(mean, Of(log_pi), 1, /*keepdim=*/true, at::kDouble);
    at::sum_out(sum, at::addcmul(d_a * a, d_b, b), 1, /*keepdim=*/true, at::kDouble);  // minus the pair's mean value
    sum.addcmul_(at::exp(Of(log_alpha)), mean);
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
    at::Tensor out = Of(gradient);
    at::mul_out(out, at::exp(Of(log_alpha).to(at::kDouble)), Of(mean_log_pi) + Of(target_entropy));
    out.neg_();
  }
};

const TorchImpls::Register<SacKernels, SacTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
