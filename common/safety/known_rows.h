// Rows of a task's known constraints as records of safe_map.h, which join the learned constraint in one safe map.
//
// A row with viability gain g > 0 is a constraint on positions p, which the action, an acceleration or a force, affects
// only through the velocity v. It is replaced by c = k + g k_dot, which the action affects directly; c <= 0 at all
// times keeps k <= 0 at all times. A row with g = 0 is unchanged, c = k. With J = dk/dp, along the nominal model
//   g > 0: c = k + g (J p_dot + r),  own = J p_dot + g (a + J v_dot at u = 0),  J_G = g J dv_dot/du
//   g = 0: c = k,                    own = dk/dq f,                             J_G = dk/dq G
// and drift = max(own, 0) + dk/dx x_dot + r + g b: as in ReduceTerms the own drift of inequalities is truncated, that
// of equations and the motion of x and of the rest are not. The records of equations come last. a is the rate of k_dot
// by the motion of p at constant velocity; r and b are the rates of k and k_dot by what is neither in q nor in x. They
// come with rows that are read from the observation. For closed forms r = b = 0, and a is a central difference of J
// p_dot of step 1e-4 s.
#ifndef DATACOM_COMMON_SAFETY_KNOWN_ROWS_H_
#define DATACOM_COMMON_SAFETY_KNOWN_ROWS_H_

#include <memory>
#include <vector>

#include "common/safety/control_affine.h"
#include "common/safety/known_constraints.h"
#include "common/safety/safe_map.h"

namespace datacom {

// The task's model at one state; null for an empty part.
struct KnownRowsInput {
  const double* q = nullptr;            // [q]
  const double* x = nullptr;            // [x]
  const double* f = nullptr;            // [q]
  const double* G = nullptr;            // [q, n]
  const double* x_dot = nullptr;        // [x]
  const double* observation = nullptr;  // [obs]; only for rows that are read from it
};

struct KnownRowsForm {
  std::vector<double> gains;  // [K] of all of the constraints' rows; empty = their own
  // The published baseline (AnalyticMap): rows with a gain have g = 1 in the action's row and in the own drift and
  // the gain only in c; a is a forward difference.
  // Equations always have the exact form: the published baseline has none.
  bool published = false;
};

// Not thread-safe: owns its workspace, allocated when it is made; shares the constraints. Evaluate neither allocates
// nor blocks.
class KnownRows {
 public:
  KnownRows() = default;  // no rows
  // rows: indices of the constraints' rows (SelectKnownRows finds them by name).
  KnownRows(std::shared_ptr<const KnownConstraints> constraints, std::vector<int> rows, const ControlAffineDims& dims,
            KnownRowsForm form = {});

  int count() const { return static_cast<int>(rows_.size()); }
  int equalities() const { return equalities_; }
  // records: [count, n + 2] of safe_map.h.
  void Evaluate(const KnownRowsInput& at, double* records);

 private:
  // J of all rows after `time` seconds of the own motion.
  void EvaluateMoved(const KnownRowsInput& at, double time, std::vector<double>* J);
  void EvaluateOwnMotion(const KnownRowsInput& at);

  std::shared_ptr<const KnownConstraints> constraints_;
  std::vector<int> rows_;  // equations last
  int equalities_ = 0;
  ControlAffineDims dims_;
  KnownRowsForm form_;
  bool has_gains_ = false;  // some row has a gain
  // The values of all K rows of the constraints, laid out as in KnownConstraintsOut.
  std::vector<double> k_, J_q_, J_x_, rate_, J_v_, own_acceleration_, acceleration_;
  std::vector<double> moved_;                // [q]
  std::vector<double> J_later_, J_earlier_;  // [K, q]: J after and before a step of the own motion
  std::vector<double> c_q_;                  // [q]: dc/dq of one row
};

// The map of the ATACOM baselines: the safe map over only the known constraints (docs/safe_map.md 3.4; air
// hockey's rows: docs/air_hockey.md 9).
//
// Row i with gain g_i > 0 is a constraint on positions that is made forward invariant, c = k + g k_dot; with g_i = 0
// the row is unchanged. Rows are taken from KnownRows in the published form: the gain multiplies k_dot in c, but
// neither the action's row nor the drift (exact for g = 1 only). All gains 0 is the baseline without forward
// invariance; where the action is an acceleration or a force, it then affects only rows on velocities.
//
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
  std::vector<double> records_;  // [K, n + 2]
};

}  // namespace datacom

#endif  // DATACOM_COMMON_SAFETY_KNOWN_ROWS_H_
// SPDX-License-Identifier: Apache-2.0
