// The map of the ATACOM baselines: the safe map over only the known constraints (docs/safe_map.md 3.4; air
// hockey's rows: docs/air_hockey.md 9).
//
// Row i with gain g_i > 0 is a constraint on positions that is made forward invariant, c = k + g k_dot; with g_i = 0
// the row is unchanged. Rows are taken from known_rows.h in the published form: the gain multiplies k_dot in c, but
// neither the action's row nor the drift (exact for g = 1 only). All gains 0 is the baseline without forward
// invariance; where the action is an acceleration or a force, it then affects only rows on velocities.
#ifndef DATACOM_COMMON_SAFETY_ANALYTIC_MAP_H_
#define DATACOM_COMMON_SAFETY_ANALYTIC_MAP_H_

#include <memory>
#include <vector>

#include "common/safety/control_affine.h"
#include "common/safety/known_constraints.h"
#include "common/safety/known_rows.h"
#include "common/safety/safe_map.h"

namespace datacom {

// Not thread-safe: owns its workspace, allocated when it is made; shares the constraints. Set and Apply neither
// allocate nor block.
class AnalyticMap {
 public:
  // gains: [K], instead of the constraints' own. dims.action: at most kMaxSafeMapActions.
  AnalyticMap(const std::shared_ptr<const KnownConstraints>& constraints, std::vector<double> gains,
              const ControlAffineDims& dims);

  void Set(const KnownRowsInput& at, const SafeMapGains& gains);
  // action [n] = B_top clip(u) + offset, not rescaled, because the environment limits it. With equations it is
  // rescaled: an environment that clips entries would leave them.
  void Apply(const double* u, double* action) const {
    if (map_.dims().equalities > 0) {
      map_.Apply(u, action);
    } else {
      map_.ApplyUnscaled(u, action);
    }
  }

 private:
  KnownRows rows_;
  SafeMap map_;
  std::vector<double> records_;          // [K, n + 2]
  std::vector<double> c_, drift_, J_G_;  // [K], [K], [K, n]
};

}  // namespace datacom

#endif  // DATACOM_COMMON_SAFETY_ANALYTIC_MAP_H_
// SPDX-License-Identifier: Apache-2.0
