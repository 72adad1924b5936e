#include "learner/algorithms/quantile_kernels.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Every row `count` times: [members, rows, cols] -> [members, rows * count, cols]. at::repeat_interleave reads a number
// on the host in LibTorch 1.13, so a CUDA graph could not record it.
at::Tensor RepeatRows(const at::Tensor& x, int64_t count) {
  return x.unsqueeze(2).expand({-1, -1, count, -1}).flatten(1, 2);
}

class QuantileTorch : public TorchImpl<QuantileKernels> {
 public:
  using TorchImpl::TorchImpl;

  void LevelFeatures(const FloatView& level, const FloatView& features) override {
    const at::Tensor tau = Of(level).reshape({level.members, features.rows, 1});
    const at::Tensor i = at::arange(features.cols, tau.options()).view({1, 1, features.cols});
    Of(features).copy_(at::cos(i * kPi * tau));
  }

  void QuantileProduct(const FloatView& base, const FloatView& embedding, const FloatView& product) override {
    const at::Tensor e = Of(embedding);
    e.sigmoid_();
    const at::Tensor h = RepeatRows(at::relu(Of(base)), product.rows / base.rows);
    Of(product).copy_(h * e);
  }

  void QuantileProductGradient(const FloatView& base, const FloatView& embedding, const FloatView& d_product,
                               const FloatView& d_base) override {
    const int64_t repeat = d_product.rows / base.rows;
    const at::Tensor h = RepeatRows(at::relu(Of(base)), repeat), e = Of(embedding), d = Of(d_product);
    const at::Tensor open = at::where(h.gt(0), d * e, at::zeros_like(d));
    Of(d_base).copy_(open.view({d_base.members, d_base.rows, repeat, d_base.cols}).sum(2));
    d.copy_(open * h * (1 - e));
  }

  void QuantileRisk(const FloatView& value, const FloatView& gradient, const DoubleView& delta, const DoubleView& k,
                    const DoubleView& J) override {
    const at::Tensor o = Of(value);
    Of(k).copy_(at::softplus(o).to(at::kDouble) - Of(delta));
    Of(J).copy_(at::sigmoid(o) * Of(gradient));
  }

  void QuantileTarget(const FloatView& cost, const FloatView& absorbing, const FloatView& next, double discount,
                      const FloatView& y) override {
    const int64_t repeat = y.rows / cost.rows;
    const at::Tensor c = RepeatRows(at::clamp_min(Of(cost), 0), repeat);
    const at::Tensor ends = RepeatRows(Of(absorbing).ne(0), repeat);
    Of(y).copy_(at::where(ends, c, c + discount * at::softplus(Of(next))));
  }

  void QuantileLoss(const FloatView& value, const FloatView& y, const FloatView& level, const FloatView& row_weight,
                    const FloatView& d_value, const DoubleView& loss) override {
    const int64_t members = value.members, rows = level.rows, count = level.cols;
    const at::Tensor o = Of(value), q = at::softplus(o).view({members, rows, count, 1});
    const at::Tensor tau = Of(level).unsqueeze(3), targets = Of(y).view({members, rows, 1, y.rows / rows});
    const at::Tensor e = targets - q, size = at::abs(e);
    const at::Tensor weight = at::where(e.lt(0), 1 - tau, tau.expand_as(e));
    const at::Tensor huber = at::where(size.lt(1), 0.5 * e * e, size - 0.5);
    const at::Tensor share = Of(row_weight) / count;  // of each quantile
    const at::Tensor per_quantile = (weight * huber).sum(3), slope = (weight * at::clamp(e, -1, 1)).sum(3).neg_();
    at::Tensor d = Of(d_value), sum = Of(loss);
    at::mul_out(d, (slope * share).view({members, rows * count, 1}), at::sigmoid(o));
    at::sum_out(sum, per_quantile * share, at::IntArrayRef({1, 2}), /*keepdim=*/true, at::kDouble);
  }
};

const TorchImpls::Register<QuantileKernels, QuantileTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
