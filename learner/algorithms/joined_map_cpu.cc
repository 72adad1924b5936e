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
  void JoinMap(const JoinedMapInput& in, const DoubleView& map) override {
    const SafeMapInput& learned = in.learned;
    const int q = learned.f.cols, n = learned.G.cols / q;
    const SafeMapDims dims{1 + in.known.cols / JoinedRowSize(n), n, q, learned.x_dot.cols, in.equalities};
    thread_local std::unique_ptr<datacom::SafeMap> joined_map;  // of this thread, because calls may run together
    if (joined_map == nullptr || !(joined_map->dims() == dims)) joined_map = std::make_unique<datacom::SafeMap>(dims);
    for (int m = 0; m < map.members; ++m) {
      const SafeMapGains gains{learned.gain.at(m), learned.slack_beta.at(m)};
      for (int r = 0; r < map.rows; ++r) {
        const double* const J = learned.J.row(m, r);
        const SafeMapTerms terms{learned.k.row(m, r),    J, J + q, learned.f.row(m, r), learned.G.row(m, r),
                                 learned.x_dot.row(m, r)};
        joined_map->Set(terms, in.known.row(m, r), gains);
        double* const out = map.row(m, r);
        std::copy_n(joined_map->basis(), n * n, out);
        std::copy_n(joined_map->offset(), n, out + n * n);
        std::copy_n(joined_map->fixed(), n, out + n * n + n);
        out[n * n + 2 * n] = joined_map->log_det();
      }
    }
  }

  void JoinedMap(const DoubleView& map, const DoubleView& target_entropy, const FloatView& u,
                 const SafeMapOutput& out) override {
    const int n = u.cols;
    double tangent[kMaxSafeMapActions], action[kMaxSafeMapActions];
    for (int m = 0; m < u.members; ++m) {
      const double floor = target_entropy.at(m);
      for (int r = 0; r < u.rows; ++r) {
        const double* const basis = map.row(m, r);
        for (int i = 0; i < n; ++i) tangent[i] = u.at(m, r, i);
        const double scale = ApplySafeMap(n, basis, basis + n * n, basis + n * n + n, tangent, action);
        for (int i = 0; i < n; ++i) out.action.at(m, r, i) = static_cast<float>(action[i]);
        const double log_det = basis[n * n + 2 * n];
        out.log_pi.at(m, r) -= static_cast<float>(log_det < floor ? floor : log_det);
        out.record.at(m, r) = scale;
      }
    }
  }

  void JoinedMapGradient(const DoubleView& map, const DoubleView& record, const FloatView& u, const FloatView& d_action,
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
