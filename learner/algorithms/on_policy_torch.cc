#include "learner/algorithms/on_policy_kernels.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {
namespace {

constexpr double kHalfLogTwoPi = 0.918938533204672742;

at::Tensor Inner(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) * b.to(at::kDouble)).sum(2, /*keepdim=*/true);
}

class OnPolicyTorch : public TorchImpl<OnPolicyKernels> {
 public:
  using TorchImpl::TorchImpl;

  // advantage_t = d_t + g_t advantage_(t+1), whose factor g_t is 0 at a path's end, is solved by doubling: after k
  // steps d_t holds the sum over the next 2^k rows, g_t the product of their factors.
  void Advantages(const PathRows& rows, double least, double discount, const DoubleView& lambda,
                  const FloatView& advantage, const FloatView& target) override {
    const int64_t count = advantage.rows;
    const auto wide = [this](const FloatView& view) { return Of(view).to(at::kDouble); };
    const at::Tensor value = wide(rows.value), raw = wide(rows.signal);
    at::Tensor ends = wide(rows.path_end).ne(0);
    ends = at::cat({ends.narrow(1, 0, count - 1), at::ones_like(ends.narrow(1, count - 1, 1))}, 1);
    const at::Tensor later = at::cat({value.narrow(1, 1, count - 1), value.narrow(1, 0, 1)}, 1);
    const at::Tensor next = at::where(ends, wide(rows.next_value), later);
    const at::Tensor signal = at::where(raw.lt(least), at::full_like(raw, least), raw);
    at::Tensor d = signal + discount * (1 - wide(rows.absorbing)) * next - value;
    at::Tensor g = ends.eq(0).to(at::kDouble) * (discount * Of(lambda));
    for (int64_t k = 1; k < count; k *= 2) {
      const at::Tensor near = g.narrow(1, 0, count - k);
      d = at::cat({d.narrow(1, 0, count - k) + near * d.narrow(1, k, count - k), d.narrow(1, count - k, k)}, 1);
      g = at::cat({near * g.narrow(1, k, count - k), g.narrow(1, count - k, k)}, 1);
    }
    Of(advantage).copy_(d);
    Of(target).copy_(d + value);
  }

  void Standardise(const FloatView& x) override {
    const at::Tensor wide = Of(x).to(at::kDouble), apart = wide - wide.mean(1, /*keepdim=*/true);
    Of(x).copy_(apart / (at::sqrt(at::square(apart).mean(1, /*keepdim=*/true)) + 1e-8));
  }

  void Centre(const FloatView& x) override {
    const at::Tensor wide = Of(x).to(at::kDouble);
    Of(x).copy_(wide - wide.mean(1, /*keepdim=*/true));
  }

  void PriceAdvantages(const FloatView& reward, const FloatView& cost, const DoubleView& multiplier,
                       const FloatView& out) override {
    const at::Tensor price = Of(multiplier).to(at::kFloat);
    Of(out).copy_((Of(reward) - price * Of(cost)) / (1 + price));
  }

  void Gather(const FloatView& rows, const DoubleView& index, const FloatView& out) override {
    const at::Tensor at = Of(index).to(at::kLong).expand({index.members, index.rows, out.cols});
    Of(out).copy_(at::gather(Of(rows), 1, at));
  }

  void AddSquares(const FloatView& parameters, const DoubleView& weight, const FloatView& gradient,
                  const DoubleView& loss) override {
    const at::Tensor x = Of(parameters);
    const at::Tensor squares = at::square(x.to(at::kDouble)).sum(2, /*keepdim=*/true);
    Of(loss).copy_((Of(loss) + Of(weight) * squares).to(at::kFloat));
    Of(gradient).add_((2 * Of(weight)).to(at::kFloat) * x);
  }

  void Shorten(const DoubleView& norm, const DoubleView& limit, const FloatView& gradient) override {
    Of(gradient).mul_(at::clamp_max(Of(limit) / (Of(norm) + 1e-6), 1.0).to(at::kFloat));
  }

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

  void Curvature(const FloatView& tangent, const FloatView& log_std, double share, const FloatView& d_mean) override {
    Of(d_mean).copy_(Of(tangent) * at::exp(-2 * Of(log_std)) * share);
  }

  void Collect(const FloatView& from, bool add, const FloatView& to) override {
    add ? Of(to).add_(Of(from)) : Of(to).copy_(Of(from));
  }

  void FinishProduct(const FloatView& direction, int log_std, double factor, const DoubleView& damping,
                     const FloatView& product) override {
    const int count = product.cols - log_std;
    Of(product.Cols(log_std, count)).copy_(factor * Of(direction.Cols(log_std, count)));
    Of(product).add_(Of(damping).to(at::kFloat) * Of(direction));
  }

  void BeginSolve(const FloatView& gradient, const ConjugateSolve& solve) override {
    const at::Tensor b = -Of(gradient);
    Of(solve.x).zero_();
    Of(solve.residual).copy_(b);
    Of(solve.direction).copy_(b);
    Of(solve.squared_residual).copy_(Inner(b, b));
    Of(solve.running).fill_(1);
  }

  void ContinueSolve(const ConjugateSolve& solve) override {
    const at::Tensor x = Of(solve.x), residual = Of(solve.residual), direction = Of(solve.direction);
    const at::Tensor squares = Of(solve.squared_residual), running = Of(solve.running), on = running.gt(0);
    const at::Tensor length = (squares / (Inner(direction, Of(solve.product)) + 1e-6)).to(at::kFloat);
    x.copy_(at::where(on, x + length * direction, x));
    residual.copy_(at::where(on, residual - length * Of(solve.product), residual));
    const at::Tensor left = Inner(residual, residual);
    running.mul_(at::sqrt(left).lt(1e-10).eq(0));
    const at::Tensor keep = (left / (squares + 1e-6)).to(at::kFloat);
    direction.copy_(at::where(running.gt(0), residual + keep * direction, direction));
    squares.copy_(at::where(running.gt(0), left, squares));
  }

  void NaturalStep(const FloatView& x, const FloatView& product, const DoubleView& length, const DoubleView& active,
                   const FloatView& parameters) override {
    const at::Tensor along = Of(x), to = Of(parameters);
    const at::Tensor scale = at::sqrt(2 * Of(length) / (Inner(along, Of(product)) + 1e-8));
    Of(active).mul_(at::isfinite(scale * scale * Inner(along, along)));
    to.copy_(at::where(Of(active).gt(0), to + scale.to(at::kFloat) * along, to));
  }
};

const TorchImpls::Register<OnPolicyKernels, OnPolicyTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
