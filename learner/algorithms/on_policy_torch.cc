#include "learner/algorithms/on_policy_kernels.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {
namespace {

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

  void Copy(const FloatView& from, const FloatView& to) override { Of(to).copy_(Of(from)); }

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
};

const TorchImpls::Register<OnPolicyKernels, OnPolicyTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
