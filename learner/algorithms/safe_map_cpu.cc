#include "learner/algorithms/safe_map_kernels.h"
#include "learner/algorithms/safe_map_row.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

class SafeMapCpu : public CpuImpl<SafeMapKernels> {
 public:
  void SafeMap(const SafeMapInput& in, const FloatView& u, const SafeMapOutput& out) override {
    SafeMapRow row;
    row.n = u.cols, row.q = in.f.cols, row.x = in.x_dot.cols;
    for (int m = 0; m < u.members; ++m) {
      row.gain = in.gain.at(m), row.slack_beta = in.slack_beta.at(m);
      const double floor = in.target_entropy.at(m);
      for (int r = 0; r < u.rows; ++r) {
        row.k = in.k.at(m, r);
        row.J = in.J.row(m, r), row.f = in.f.row(m, r), row.G = in.G.row(m, r), row.x_dot = in.x_dot.row(m, r);
        double* record = out.record.row(m, r);
        const double log_det = MapRow(row, u.row(m, r), record);
        out.log_pi.at(m, r) -= static_cast<float>(log_det < floor ? floor : log_det);
        for (int i = 0; i < row.n; ++i) out.action.at(m, r, i) = static_cast<float>(record[row.n + 2 + i]);
      }
    }
  }

  void SafeMapGradient(const DoubleView& record, const FloatView& u, const FloatView& d_action,
                       const FloatView& d_u) override {
    for (int m = 0; m < u.members; ++m) {
      for (int r = 0; r < u.rows; ++r) {
        MapRowGradient(u.cols, record.row(m, r), u.row(m, r), d_action.row(m, r), d_u.row(m, r));
      }
    }
  }
};

const CpuImpls::Register<SafeMapKernels, SafeMapCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
