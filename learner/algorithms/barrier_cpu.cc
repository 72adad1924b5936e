#include "learner/algorithms/barrier_kernels.h"
#include "learner/algorithms/barrier_row.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

class BarrierCpu : public CpuImpl<BarrierKernels> {
 public:
  void BarrierLoss(const BarrierInput& in, const FloatView& d_value, const FloatView& d_slope,
                   const DoubleView& loss) override {
    using In = BarrierInput;
    const int rows = in.value.rows;
    for (int m = 0; m < in.value.members; ++m) {
      const double* numbers = in.numbers.row(m, 0);
      int unsafe_rows = 0;
      for (int r = 0; r < rows; ++r) unsafe_rows += in.cost.at(m, r) > 0;
      BarrierRow row;
      row.n = in.action.cols, row.q = in.slope.cols;
      row.half = in.box.half.row(0, 0), row.centre = in.box.centre.row(0, 0);
      row.penalty = numbers[In::kPenalty], row.decay = numbers[In::kDecay];
      const double relaxation_share = numbers[In::kRelaxationWeight] / rows;
      double sum = 0;
      for (int r = 0; r < rows; ++r) {
        const bool unsafe = in.cost.at(m, r) > 0;
        const double share =
            unsafe ? numbers[In::kUnsafeWeight] / unsafe_rows : numbers[In::kSafeWeight] / (rows - unsafe_rows);
        const double V = in.value.at(m, r), excess = numbers[In::kMargin] + (unsafe ? -V : V);
        const bool counts = !(excess <= 0);  // also true for NaN
        row.V = V, row.slope = in.slope.row(m, r), row.f = in.f.row(m, r), row.G = in.G.row(m, r);
        row.action = in.action.row(m, r);
        for (int d = 0; d < row.q; ++d) d_slope.at(m, r, d) = 0;
        const double relaxation = Relaxation(row, relaxation_share, d_slope.row(m, r));
        sum += (counts ? share * excess : 0) + relaxation_share * relaxation;
        const double labelled = counts ? (unsafe ? -share : share) : 0;
        d_value.at(m, r) = static_cast<float>(labelled + (relaxation > 0 ? relaxation_share * row.decay : 0));
      }
      loss.at(m) = sum;
    }
  }
};

const CpuImpls::Register<BarrierKernels, BarrierCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
