// Risk of a Gaussian constraint value, budgets (docs/algorithms.md 4 and 5.2), softplus. Pure functions;
// thread-safe.
#ifndef DATACOM_COMMON_SAFETY_RISK_H_
#define DATACOM_COMMON_SAFETY_RISK_H_

#include <algorithm>
#include <cmath>
#include <limits>

namespace datacom {

inline double NormalPdf(double x) {
  constexpr double kInverseSqrt2Pi = 0.39894228040143267794;
  return kInverseSqrt2Pi * std::exp(-0.5 * x * x);
}

// Phi^-1(p) for p in (0, 1); -inf and +inf at the ends, NaN outside. Relative error about 1e-15.
// The start is a textbook rational approximation (Abramowitz and Stegun 26.2.23, error 4.5e-4) on the smaller tail t;
// Halley steps on Phi(-x) = erfc(x / sqrt 2) / 2 = t, which keeps its relative accuracy far into the tail.
inline double InverseNormalCdf(double p) {
  if (!(p >= 0 && p <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (p == 0 || p == 1) return (p == 0 ? -1 : 1) * std::numeric_limits<double>::infinity();
  const bool lower = p < 0.5;
  const double tail = lower ? p : 1 - p;
  const double w = std::sqrt(-2 * std::log(tail));
  double x = w - (2.515517 + w * (0.802853 + w * 0.010328)) / (1 + w * (1.432788 + w * (0.189269 + w * 0.001308)));
  for (int i = 0; i < 3; ++i) {
    const double step = (0.5 * std::erfc(x * 0.70710678118654752440) - tail) / NormalPdf(x);
    x += step / (1 - 0.5 * x * step);
  }
  return lower ? -x : x;
}

// CVaR of a Gaussian at accepted risk rho (1 - alpha of the paper) is mean + std * GaussianRiskMargin(rho):
// phi(Phi^-1(1 - rho)) / rho. rho in (0, 1): 0.9 -> 0.195 (almost the mean), 0.1 -> 1.755.
// Phi^-1(1 - rho) = -Phi^-1(rho), and phi is even.
inline double GaussianRiskMargin(double accepted_risk) {
  return NormalPdf(InverseNormalCdf(accepted_risk)) / accepted_risk;
}

// An undiscounted budget per episode as the discounted cost-to-go that spends it evenly over the horizon:
// budget / H * (1 - gamma^H) / (1 - gamma). discount in [0, 1]; expm1 keeps digits for discounts close to 1.
inline double DiscountedBudget(double budget, int horizon, double discount) {
  if (discount == 1) return budget;
  const double powers = discount > 0 ? -std::expm1(horizon * std::log(discount)) : 1.0;  // 1 - gamma^H
  return budget / horizon * powers / (1 - discount);
}

// delta and Lagrange multipliers, from their raw values.
inline double Softplus(double raw) { return raw > 20 ? raw : std::log1p(std::exp(raw)); }
// The raw value from which delta starts: init_delta, at least 0.1 (docs/algorithms.md 5.1).
inline double RawStartOfDelta(double init_delta) { return std::max(init_delta, 0.1); }

}  // namespace datacom

#endif  // DATACOM_COMMON_SAFETY_RISK_H_
// SPDX-License-Identifier: Apache-2.0
