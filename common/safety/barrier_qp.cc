#include "common/safety/barrier_qp.h"

#include <algorithm>

namespace datacom {
namespace {

// phi(nu), and its action.
double Violation(const BarrierQp& qp, const double* wanted, double nu, double* action) {
  double value = qp.Lf_V + qp.decay * qp.V;
  for (int i = 0; i < qp.n; ++i) {
    action[i] = std::clamp(wanted[i] - nu / 2 * qp.LG_V[i], qp.low[i], qp.high[i]);
    value += qp.LG_V[i] * action[i];
  }
  return value;
}

}  // namespace

BarrierQpSolution SolveBarrierQp(const BarrierQp& qp, const double* wanted, double* action) {
  double left = 0, right = qp.penalty;
  double above = Violation(qp, wanted, left, action);  // phi(left) > 0 >= phi(right) from here on
  if (above <= 0) return {0, 0};
  double below = Violation(qp, wanted, right, action);
  if (below > 0) return {below, qp.penalty};
  // No kink, where an entry of the action meets its bound, is left between them in the end.
  for (int i = 0; i < qp.n; ++i) {
    if (qp.LG_V[i] == 0) continue;
    for (const double bound : {qp.low[i], qp.high[i]}) {
      const double kink = 2 * (wanted[i] - bound) / qp.LG_V[i];
      if (kink <= left || kink >= right) continue;
      const double value = Violation(qp, wanted, kink, action);
      (value > 0 ? left : right) = kink;
      (value > 0 ? above : below) = value;
    }
  }
  const double nu = left + (right - left) * (above / (above - below));
  Violation(qp, wanted, nu, action);
  return {0, nu};
}

}  // namespace datacom
