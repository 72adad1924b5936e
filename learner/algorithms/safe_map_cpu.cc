#include "learner/algorithms/safe_map_kernels.h"
#include "learner/algorithms/safe_map_row.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

class SafeMapCpu : public CpuImpl<SafeMapKernels> {
 public:
  void State(const SafeMapInput& in, const DoubleView& map) override {
    SafeMapRow row;
    row.q = in.f.cols, row.x = in.x_dot.cols, row.n = in.G.cols / row.q;
    for (int m = 0; m < map.members; ++m) {
      row.gain = in.gain.at(m), row.slack_beta = in.slack_beta.at(m);
      for (int r = 0; r < map.rows; ++r) {
        row.k = in.k.at(m, r);
        row.J = in.J.row(m, r), row.f = in.f.row(m, r), row.G = in.G.row(m, r), row.x_dot = in.x_dot.row(m, r);
        MapRowState(row, in.target_entropy.at(m), map.row(m, r));
      }
    }
  }

  void Action(const DoubleView& map, const FloatView& u, const SafeMapOutput& out) override {
    const int n = u.cols;
    for (int m = 0; m < u.members; ++m) {
      for (int r = 0; r < u.rows; ++r) {
        const double* const state = map.row(m, r);
        out.record.at(m, r) = MapRowAction(n, state, u.row(m, r), out.action.row(m, r));
        out.log_pi.at(m, r) -= static_cast<float>(state[n + 2]);
      }
    }
  }

  void Gradient(const DoubleView& map, const DoubleView& record, const FloatView& u, const FloatView& d_action,
                const FloatView& d_u) override {
    for (int m = 0; m < u.members; ++m) {
      for (int r = 0; r < u.rows; ++r) {
        MapRowGradient(u.cols, map.row(m, r), record.at(m, r), u.row(m, r), d_action.row(m, r), d_u.row(m, r));
      }
    }
  }
};

const CpuImpls::Register<SafeMapKernels, SafeMapCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
