// The filter of a control barrier function V(q), safe where V <= 0, for a control-affine system: the action nearest to
// the nominal one for which V decays; when there is none, the penalty trades the distance against the violation r.
//   minimise |u - nominal|^2 + penalty r   subject to   Lf_V + LG_V u + decay V <= r,  r >= 0,  low <= u <= high
// with Lf_V = dV/dq f and LG_V = dV/dq G. The solution is exact
// (docs/algorithms.md 13.1). Pure function, float64; thread-safe; allocates nothing.
#ifndef DATACOM_COMMON_SAFETY_BARRIER_QP_H_
#define DATACOM_COMMON_SAFETY_BARRIER_QP_H_

namespace datacom {

struct BarrierQp {
  int n = 0;  // actions
  double V = 0, Lf_V = 0;
  const double* LG_V = nullptr;   // [n]
  const double* low = nullptr;    // [n]
  const double* high = nullptr;   // [n]
  double decay = 1, penalty = 1;  // penalty > 0
};

struct BarrierQpSolution {
  double relaxation = 0;  // r
  double multiplier = 0;  // nu, in [0, penalty]
};

// nominal, action: [n]; not the same array.
BarrierQpSolution SolveBarrierQp(const BarrierQp& qp, const double* nominal, double* action);

}  // namespace datacom

#endif  // DATACOM_COMMON_SAFETY_BARRIER_QP_H_
// SPDX-License-Identifier: Apache-2.0
