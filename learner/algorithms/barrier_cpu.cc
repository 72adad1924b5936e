#include "learner/algorithms/barrier_kernels.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

// One row of the loss of CBF-SAC's barrier (docs/algorithms.md 13.2): by how much the filter must relax its
// constraint, and the gradient of that. float64; pure function; allocates nothing; passes NaN on.
struct BarrierRow {
  int n = 0, q = 0;
  double V = 0;
  const float* slope = nullptr;   // [q] dV/dq
  const double* f = nullptr;      // [q]
  const double* G = nullptr;      // [q, n]
  const float* action = nullptr;  // [n] of the policy
  const float* half = nullptr;    // [n] of the box
  const float* centre = nullptr;  // [n]
  double penalty = 0, decay = 0;
};

// max(0, phi(penalty)) with phi(nu) = dV/dq f + decay V + L clip(action - nu/2 L), L = dV/dq G. If it is positive, adds
// weight times its gradient for the slope to d_slope [q]; its gradient for V is the decay.
inline double Relaxation(const BarrierRow& in, double weight, float* d_slope) {
  double phi = in.decay * in.V;
  for (int d = 0; d < in.q; ++d) phi += in.slope[d] * in.f[d];
  const auto filtered = [&in](int i, double* L, bool* inside) {
    *L = 0;
    for (int d = 0; d < in.q; ++d) *L += in.slope[d] * in.G[d * in.n + i];
    const double wanted = in.action[i] - in.penalty / 2 * *L;
    const double low = static_cast<double>(in.centre[i]) - in.half[i],
                 high = static_cast<double>(in.centre[i]) + in.half[i];
    *inside = wanted >= low && wanted <= high;
    return wanted < low ? low : (wanted > high ? high : wanted);
  };
  double L = 0;
  bool inside = false;
  for (int i = 0; i < in.n; ++i) {
    const double action = filtered(i, &L, &inside);
    phi += L * action;
  }
  if (phi <= 0) return 0;
  for (int d = 0; d < in.q; ++d) d_slope[d] += static_cast<float>(weight * in.f[d]);
  for (int i = 0; i < in.n; ++i) {
    const double action = filtered(i, &L, &inside);
    const double d_L = weight * (action - (inside ? in.penalty / 2 * L : 0));
    for (int d = 0; d < in.q; ++d) d_slope[d] += static_cast<float>(in.G[d * in.n + i] * d_L);
  }
  return phi;
}

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
