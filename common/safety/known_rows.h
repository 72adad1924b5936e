// Rows of a task's known constraints in the form in which they join the learned constraint in one safe map: as records
// of safe_map.h.
//
// A row with viability gain g > 0 is a constraint on positions p, which the action, an acceleration, reaches only
// through the velocity v. It is taken as c = k + g J v, J = dk/dp, which the action does reach; c <= 0 at all times
// keeps k <= 0 at all times. A row with g = 0 is taken as it is, c = k. Both have an exact gradient,
//   g > 0: dc/dq = [J + g J_dot, g J], J_dot = (d/dt) J along v (the second derivatives of k are symmetric);
//   g = 0: dc/dq = dk/dq,
// and c, dc/dq, dk/dx go through the map's own steps (ReduceTerms): the joined row is the derivative of c along the
// nominal model, its own drift truncated, the motion of x not. J_dot by a central difference of step 1e-4 along v.
// (analytic_map.h, the published baseline, leaves g out of the action's row and of J_dot.)
#ifndef DATACOM_COMMON_SAFETY_KNOWN_ROWS_H_
#define DATACOM_COMMON_SAFETY_KNOWN_ROWS_H_

#include <memory>
#include <vector>

#include "common/safety/control_affine.h"
#include "common/safety/known_constraints.h"

namespace datacom {

// The task's model at one state; null where that part is empty.
struct KnownRowsInput {
  const double* q = nullptr;      // [q]
  const double* x = nullptr;      // [x]
  const double* f = nullptr;      // [q]
  const double* G = nullptr;      // [q, n]
  const double* x_dot = nullptr;  // [x]
};

// Not thread-safe: owns its workspace, sized at making; shares the constraints. Evaluate allocates nothing and blocks
// nowhere.
class KnownRows {
 public:
  KnownRows() = default;  // no rows
  // rows: indices of the constraints' rows (tasks/known_selection.h finds them by name).
  KnownRows(std::shared_ptr<const KnownConstraints> constraints, std::vector<int> rows, const ControlAffineDims& dims);

  int count() const { return static_cast<int>(rows_.size()); }
  // records: [count, n + 2] of safe_map.h.
  void Evaluate(const KnownRowsInput& at, double* records);

 private:
  void EvaluateBends(const KnownRowsInput& at);

  std::shared_ptr<const KnownConstraints> constraints_;
  std::vector<int> rows_;
  ControlAffineDims dims_;
  bool bends_ = false;                  // some row has a gain
  std::vector<double> k_, J_q_, J_x_;   // of all of the constraints' K rows: [K], [K, q], [K, x]
  std::vector<double> moved_;           // [q]
  std::vector<double> before_, J_dot_;  // [K, q]: J a step back; J_dot
  std::vector<double> c_q_;             // [q]: dc/dq of one row
};

}  // namespace datacom

#endif  // DATACOM_COMMON_SAFETY_KNOWN_ROWS_H_
