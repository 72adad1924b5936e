// The filter of a control barrier function V(q), safe where V <= 0, for a control-affine system: the action nearest to
// the nominal one for which V decays; when there is none, the penalty trades the distance against the violation r.
//   minimise |u - nominal|^2 + penalty r   subject to   Lf_V + LG_V u + decay V <= r,  r >= 0,  low <= u <= high
// with Lf_V = dV/dq f and LG_V = dV/dq G. The solution is exact
// (docs/algorithms.md 13.1). Pure function, float64; thread-safe; allocates nothing.
#ifndef DATACOM_COMMON_SAFETY_BARRIER_QP_H_
#define DATACOM_COMMON_SAFETY_BARRIER_QP_H_

#include <algorithm>

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

// phi(nu): what the constraint lacks at the action for nu, which it writes.
inline double BarrierViolation(const BarrierQp& qp, const double* nominal, double nu, double* action) {
  double value = qp.Lf_V + qp.decay * qp.V;
  for (int i = 0; i < qp.n; ++i) {
    action[i] = std::clamp(nominal[i] - nu / 2 * qp.LG_V[i], qp.low[i], qp.high[i]);
    value += qp.LG_V[i] * action[i];
  }
  return value;
}

// nominal, action: [n]; not the same array.
inline BarrierQpSolution SolveBarrierQp(const BarrierQp& qp, const double* nominal, double* action) {
  double left = 0, right = qp.penalty;
  double above = BarrierViolation(qp, nominal, left, action);
  if (above <= 0) return {0, 0};
  double below = BarrierViolation(qp, nominal, right, action);
  if (below > 0) return {below, qp.penalty};
  // phi(left) > 0 >= phi(right). The loop moves both until no kink of phi, where an entry of the action reaches its
  // bound, lies between them.
  for (int i = 0; i < qp.n; ++i) {
    if (qp.LG_V[i] == 0) continue;
    for (const double bound : {qp.low[i], qp.high[i]}) {
      const double kink = 2 * (nominal[i] - bound) / qp.LG_V[i];
      if (kink <= left || kink >= right) continue;
      const double value = BarrierViolation(qp, nominal, kink, action);
      (value > 0 ? left : right) = kink;
      (value > 0 ? above : below) = value;
    }
  }
  const double nu = left + (right - left) * (above / (above - below));
  BarrierViolation(qp, nominal, nu, action);
  return {0, nu};
}

}  // namespace datacom

#endif  // DATACOM_COMMON_SAFETY_BARRIER_QP_H_
// SPDX-License-Identifier: Apache-2.0
