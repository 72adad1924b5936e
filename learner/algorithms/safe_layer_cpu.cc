#include "learner/algorithms/safe_layer_kernels.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

class SafeLayerCpu : public CpuImpl<SafeLayerKernels> {
 public:
  void DeterministicAction(const FloatView& raw, const ActionBox& box, const FloatView& action) override {
    const FloatView squashed = Temporary(0, raw);
    for (int m = 0; m < raw.members; ++m) {
      Apply(loops_.tanh, raw, squashed, m);
      EachNumber(raw, [&](int r, int i) {
        action.at(m, r, i) = squashed.at(m, r, i) * box.half.at(0, 0, i) + box.centre.at(0, 0, i);
      });
    }
  }

  void ActionInHalfRanges(const FloatView& action, const ActionBox& box, const FloatView& scaled) override {
    for (int m = 0; m < action.members; ++m) {
      EachNumber(action, [&](int r, int i) { scaled.at(m, r, i) = action.at(m, r, i) / box.half.at(0, 0, i); });
    }
  }

  void DeterministicActionGradient(const FloatView& action, const ActionBox& box, const FloatView& d_scaled,
                                   const FloatView& d_raw) override {
    for (int m = 0; m < action.members; ++m) {
      EachNumber(action, [&](int r, int i) {
        const float t = (action.at(m, r, i) - box.centre.at(0, 0, i)) / box.half.at(0, 0, i);
        d_raw.at(m, r, i) = d_scaled.at(m, r, i) * (1 - t * t);
      });
    }
  }

  void SmoothAction(const FloatView& noise, const DoubleView& std, const DoubleView& bound, const ActionBox& box,
                    const FloatView& action) override {
    for (int m = 0; m < action.members; ++m) {
      const float scale = static_cast<float>(std.at(m)), limit = static_cast<float>(bound.at(m));
      EachNumber(action, [&](int r, int i) {
        const float half = box.half.at(0, 0, i), centre = box.centre.at(0, 0, i);
        const float moved = action.at(m, r, i) + Clamp(scale * noise.at(m, r, i), -limit, limit);
        action.at(m, r, i) = Clamp(moved, centre - half, centre + half);
      });
    }
  }

  void LinearCostLoss(const FloatView& slope, const FloatView& action, const FloatView& previous, const FloatView& cost,
                      const FloatView& prediction, const FloatView& d_slope, const DoubleView& loss) override {
    for (int m = 0; m < slope.members; ++m) {
      double sum = 0;
      for (int r = 0; r < slope.rows; ++r) {
        float change = 0;
        for (int i = 0; i < slope.cols; ++i) change += slope.at(m, r, i) * action.at(m, r, i);
        prediction.at(m, r) = previous.at(m, r) + change;
        const float error = prediction.at(m, r) - cost.at(m, r);
        sum += static_cast<double>(error) * error;
        for (int i = 0; i < slope.cols; ++i) d_slope.at(m, r, i) = 2 * error / slope.rows * action.at(m, r, i);
      }
      loss.at(m) = sum / slope.rows;
    }
  }
};

const CpuImpls::Register<SafeLayerKernels, SafeLayerCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
