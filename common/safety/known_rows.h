// Rows of a task's known constraints as records of safe_map.h, which join the learned constraint in one safe map.
//
// A row with viability gain g > 0 is a constraint on positions p, which the action, an acceleration, affects only
// through the velocity v. It is replaced by c = k + g J v, J = dk/dp, which the action affects directly; c <= 0 at all
// times keeps k <= 0 at all times. A row with g = 0 is unchanged, c = k. Both have an exact gradient,
//   g > 0: dc/dq = [J + g J_dot, g J], J_dot = (d/dt) J along v (the second derivatives of k are symmetric);
//   g = 0: dc/dq = dk/dq,
// and c, dc/dq, dk/dx go through the map's own steps (ReduceTerms): the joined row is the derivative of c along the
// nominal model; its own drift is truncated, the motion of x is not. J_dot is a central difference of step 1e-4 along
// v. (analytic_map.h, the published baseline, leaves g out of the action's row and of J_dot.)
#ifndef DATACOM_COMMON_SAFETY_KNOWN_ROWS_H_
#define DATACOM_COMMON_SAFETY_KNOWN_ROWS_H_

#include <memory>
#include <vector>

#include "common/safety/control_affine.h"
#include "common/safety/known_constraints.h"

namespace datacom {

// The task's model at one state; null for an empty part.
struct KnownRowsInput {
  const double* q = nullptr;      // [q]
  const double* x = nullptr;      // [x]
  const double* f = nullptr;      // [q]
  const double* G = nullptr;      // [q, n]
  const double* x_dot = nullptr;  // [x]
};

// Not thread-safe: owns its workspace, allocated when it is made; shares the constraints. Evaluate neither allocates
// nor blocks.
class KnownRows {
 public:
  KnownRows() = default;  // no rows
  // rows: indices of the constraints' rows (tasks/known_selection.h finds them by name).
  KnownRows(std::shared_ptr<const KnownConstraints> constraints, std::vector<int> rows, const ControlAffineDims& dims);

  int count() const { return static_cast<int>(rows_.size()); }
  // records: [count, n + 2] of safe_map.h.
  void Evaluate(const KnownRowsInput& at, double* records);

 private:
  void EvaluateJacobianRates(const KnownRowsInput& at);

  std::shared_ptr<const KnownConstraints> constraints_;
  std::vector<int> rows_;
  ControlAffineDims dims_;
  bool has_gains_ = false;              // some row has a gain
  std::vector<double> k_, J_q_, J_x_;   // of all of the constraints' K rows: [K], [K, q], [K, x]
  std::vector<double> moved_;           // [q]
  std::vector<double> before_, J_dot_;  // [K, q]: J one step back; J_dot
  std::vector<double> c_q_;             // [q]: dc/dq of one row
};

}  // namespace datacom

#endif  // DATACOM_COMMON_SAFETY_KNOWN_ROWS_H_
