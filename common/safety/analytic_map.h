// The map of the ATACOM baselines: the safe map over constraints known in closed form, for a system whose action is the
// acceleration (common/safety/README.md 3.4; air hockey's rows: common/tasks/air_hockey/README.md 9).
//
// State q = [positions (n), velocities (n)], action [n]. Row i with gain g_i > 0 is a constraint on positions that is
// made forward invariant, c = k + g k_dot; with g_i = 0 the row is unchanged, c = k. As published, gains multiply
// neither the action's row nor the drift of the forward-invariant form (exact for g = 1 only):
//   g > 0: c = k + g (J p_dot),  J_G = J = dk/d position,   drift = (J + J_dot) p_dot
//   g = 0: c = k,                J_G = dk/d velocity,        drift = dk/d position p_dot
// J_dot is a finite difference of step 1e-4 along p_dot; the drift is truncated at 0 from below. All gains 0 is the
// non-invariant baseline, in which the action affects only the velocity rows.
#ifndef DATACOM_COMMON_SAFETY_ANALYTIC_MAP_H_
#define DATACOM_COMMON_SAFETY_ANALYTIC_MAP_H_

#include <memory>
#include <vector>

#include "common/safety/known_constraints.h"
#include "common/safety/safe_map.h"

namespace datacom {

// Not thread-safe: owns its workspace, allocated when it is made; shares the constraints. Set and Apply neither
// allocate nor block.
class AnalyticMap {
 public:
  // gains: [K]; action: n, at most kMaxSafeMapActions. `constraints` have a state of 2n and no uncontrollable state.
  AnalyticMap(std::shared_ptr<const KnownConstraints> constraints, std::vector<double> gains, int action);

  // q: [2n].
  void Set(const double* q, const SafeMapGains& gains);
  // action [n] = B_top clip(u) + offset, not rescaled, because the environment limits it.
  void Apply(const double* u, double* action) const { map_.ApplyUnscaled(u, action); }

 private:
  std::shared_ptr<const KnownConstraints> constraints_;
  std::vector<double> gains_;
  int action_;
  SafeMap map_;
  std::vector<double> state_;             // [2n]: q moved along the velocity
  std::vector<double> c_, drift_, J_G_;   // [K], [K], [K, n]
  std::vector<double> jacobian_, along_;  // [K, 2n]: at q, and at state_
};

}  // namespace datacom

#endif  // DATACOM_COMMON_SAFETY_ANALYTIC_MAP_H_
