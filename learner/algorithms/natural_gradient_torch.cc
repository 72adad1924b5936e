#include "learner/algorithms/natural_gradient_kernels.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {
namespace {

at::Tensor Inner(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) * b.to(at::kDouble)).sum(2, /*keepdim=*/true);
}

class NaturalGradientTorch : public TorchImpl<NaturalGradientKernels> {
 public:
  using TorchImpl::TorchImpl;

  void Curvature(const FloatView& tangent, const FloatView& log_std, double share, const FloatView& d_mean) override {
    Of(d_mean).copy_(Of(tangent) * at::exp(-2 * Of(log_std)) * share);
  }

  void Collect(const FloatView& from, bool add, const FloatView& to) override {
    if (add) {
      Of(to).add_(Of(from));
    } else {
      Of(to).copy_(Of(from));
    }
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

const TorchImpls::Register<NaturalGradientKernels, NaturalGradientTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
