// The map of several constraints on the CPU: calls the map of the actors for each row.
#include <algorithm>
#include <cmath>
#include <memory>

#include "common/safety/safe_map.h"
#include "learner/algorithms/joined_map_kernels.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

class JoinedMapCpu : public CpuImpl<JoinedMapKernels> {
 public:
  void State(const SafeMapInput& in, const DoubleView& map) override {
    const int q = in.f.cols, n = in.G.cols / q;
    const SafeMapDims dims{1 + in.known.cols / JoinedRowSize(n), n, q, in.x_dot.cols, in.equalities};
    thread_local std::unique_ptr<datacom::SafeMap> joined_map;  // of this thread, because calls may run together
    if (joined_map == nullptr || !(joined_map->dims() == dims)) joined_map = std::make_unique<datacom::SafeMap>(dims);
    for (int m = 0; m < map.members; ++m) {
      const SafeMapGains gains{in.gain.at(m), in.slack_beta.at(m)};
      const double floor = in.target_entropy.at(m);
      for (int r = 0; r < map.rows; ++r) {
        const double* const J = in.J.row(m, r);
        const SafeMapTerms terms{in.k.row(m, r), J, J + q, in.f.row(m, r), in.G.row(m, r), in.x_dot.row(m, r)};
        joined_map->Set(terms, in.known.row(m, r), gains);
        double* const out = map.row(m, r);
        std::copy_n(joined_map->basis(), n * n, out);
        std::copy_n(joined_map->offset(), n, out + n * n);
        std::copy_n(joined_map->fixed(), n, out + n * n + n);
        const double log_det = joined_map->log_det();
        out[n * n + 2 * n] = log_det < floor ? floor : log_det;
      }
    }
  }

  void Action(const DoubleView& map, const FloatView& u, const SafeMapOutput& out) override {
    const int n = u.cols;
    double tangent[kMaxSafeMapActions], action[kMaxSafeMapActions];
    for (int m = 0; m < u.members; ++m) {
      for (int r = 0; r < u.rows; ++r) {
        const double* const basis = map.row(m, r);
        for (int i = 0; i < n; ++i) tangent[i] = u.at(m, r, i);
        const double scale = ApplySafeMap(n, basis, basis + n * n, basis + n * n + n, tangent, action);
        for (int i = 0; i < n; ++i) out.action.at(m, r, i) = static_cast<float>(action[i]);
        out.log_pi.at(m, r) -= static_cast<float>(basis[n * n + 2 * n]);
        out.record.at(m, r) = scale;
      }
    }
  }

  void Gradient(const DoubleView& map, const DoubleView& record, const FloatView& u, const FloatView& d_action,
                const FloatView& d_u) override {
    const int n = u.cols;
    for (int m = 0; m < u.members; ++m) {
      for (int r = 0; r < u.rows; ++r) {
        for (int i = 0; i < n; ++i) {
          const double* const row = map.row(m, r) + i * n;  // B_top is symmetric
          double sum = 0;
          for (int j = 0; j < n; ++j) sum += row[j] * d_action.at(m, r, j);
          d_u.at(m, r, i) = std::abs(u.at(m, r, i)) <= 1 ? static_cast<float>(record.at(m, r) * sum) : 0.0f;
        }
      }
    }
  }
};

const CpuImpls::Register<JoinedMapKernels, JoinedMapCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
