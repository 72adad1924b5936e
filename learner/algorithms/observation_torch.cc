#include "learner/algorithms/observation_kernels.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {
namespace {

class ObservationTorch : public TorchImpl<ObservationKernels> {
 public:
  using TorchImpl::TorchImpl;

  void Normalise(const FloatView& raw, const FloatView& mean, const FloatView& deviation, double limit,
                 const FloatView& out) override {
    const at::Tensor x = Of(raw);
    Of(out).copy_(at::clamp((x - Of(mean)) / Of(deviation), -limit, limit) + 0 * x);
  }

  void AddObservations(const FloatView& raw, const DoubleView& active, const LeastDeviation& bounds,
                       const ObservationStatistics& statistics, const FloatView& mean,
                       const FloatView& deviation) override {
    const at::Tensor on = Of(active).gt(0), x = Of(raw).to(at::kDouble);
    const at::Tensor count = Of(statistics.count), middle = Of(statistics.mean), all = Of(statistics.squares);
    const at::Tensor total = count + raw.rows, centre = x.mean(1, /*keepdim=*/true), apart = centre - middle;
    const at::Tensor squares = all + at::square(x - centre).sum(1, /*keepdim=*/true) +
                               apart * apart * count * static_cast<double>(raw.rows) / total;
    const at::Tensor moved = middle + apart * static_cast<double>(raw.rows) / total;
    const at::Tensor reach = Of(statistics.reach), farthest = at::amax(at::abs(x - moved), 1, /*keepdim=*/true);
    const at::Tensor reached = at::maximum(reach, farthest);
    const at::Tensor known = on.logical_and(total.ge(2));
    const at::Tensor width =
        at::maximum(at::clamp_min(at::sqrt(squares / (total - 1)), bounds.least), reached / bounds.reach);
    Of(mean).copy_(at::where(known, moved.to(at::kFloat), Of(mean)));
    Of(deviation).copy_(at::where(known, width.to(at::kFloat), Of(deviation)));
    all.copy_(at::where(on, squares, all));
    middle.copy_(at::where(on, moved, middle));
    reach.copy_(at::where(on, reached, reach));
    count.copy_(at::where(on, total, count));
  }
};

const TorchImpls::Register<ObservationKernels, ObservationTorch> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
