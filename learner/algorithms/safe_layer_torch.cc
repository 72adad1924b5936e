#include "learner/algorithms/safe_layer_kernels.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {
namespace {

class SafeLayerTorch : public TorchImpl<SafeLayerKernels> {
 public:
  using TorchImpl::TorchImpl;

  void DeterministicAction(const FloatView& raw, const ActionBox& box, const FloatView& action) override {
    Of(action).copy_(at::tanh(Of(raw)) * Of(box.half) + Of(box.centre));
  }

  void ActionInHalfRanges(const FloatView& action, const ActionBox& box, const FloatView& scaled) override {
    Of(scaled).copy_(Of(action) / Of(box.half));
  }

  void DeterministicActionGradient(const FloatView& action, const ActionBox& box, const FloatView& d_scaled,
                                   const FloatView& d_raw) override {
    const at::Tensor t = (Of(action) - Of(box.centre)) / Of(box.half);
    Of(d_raw).copy_(Of(d_scaled) * (1 - t * t));
  }

  void SmoothAction(const FloatView& noise, const DoubleView& std, const DoubleView& bound, const ActionBox& box,
                    const FloatView& action) override {
    const at::Tensor limit = Of(bound).to(at::kFloat), half = Of(box.half), centre = Of(box.centre);
    const at::Tensor drawn = Of(std).to(at::kFloat) * Of(noise);
    const at::Tensor moved = Of(action) + at::maximum(at::minimum(drawn, limit), -limit);
    Of(action).copy_(at::maximum(at::minimum(moved, centre + half), centre - half));
  }

  void LinearCostLoss(const FloatView& slope, const FloatView& action, const FloatView& previous, const FloatView& cost,
                      const FloatView& prediction, const FloatView& d_slope, const DoubleView& loss) override {
    const at::Tensor a = Of(action), predicted = Of(previous) + (Of(slope) * a).sum(2, /*keepdim=*/true);
    const at::Tensor error = predicted - Of(cost);
    Of(prediction).copy_(predicted);
    Of(d_slope).copy_(2 * error / slope.rows * a);
    Of(loss).copy_(MeanRows(at::square(error.to(at::kDouble))));
  }
};

const TorchImpls::Register<SafeLayerKernels, SafeLayerTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
