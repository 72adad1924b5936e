#include "common/safety/barrier_qp.h"

#include <algorithm>

namespace datacom {
namespace {

// Returns phi(nu) and writes its action.
double Violation(const BarrierQp& qp, const double* nominal, double nu, double* action) {
  double value = qp.Lf_V + qp.decay * qp.V;
  for (int i = 0; i < qp.n; ++i) {
    action[i] = std::clamp(nominal[i] - nu / 2 * qp.LG_V[i], qp.low[i], qp.high[i]);
    value += qp.LG_V[i] * action[i];
  }
  return value;
}

}  // namespace

BarrierQpSolution SolveBarrierQp(const BarrierQp& qp, const double* nominal, double* action) {
  double left = 0, right = qp.penalty;
  double above = Violation(qp, nominal, left, action);
  if (above <= 0) return {0, 0};
  double below = Violation(qp, nominal, right, action);
  if (below > 0) return {below, qp.penalty};
  // phi(left) > 0 >= phi(right). The loop moves both until no kink of phi, where an entry of the action reaches its
  // bound, lies between them.
  for (int i = 0; i < qp.n; ++i) {
    if (qp.LG_V[i] == 0) continue;
    for (const double bound : {qp.low[i], qp.high[i]}) {
      const double kink = 2 * (nominal[i] - bound) / qp.LG_V[i];
      if (kink <= left || kink >= right) continue;
      const double value = Violation(qp, nominal, kink, action);
      (value > 0 ? left : right) = kink;
      (value > 0 ? above : below) = value;
    }
  }
  const double nu = left + (right - left) * (above / (above - below));
  Violation(qp, nominal, nu, action);
  return {0, nu};
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
