#include "learner/algorithms/risk.h"

#include <cmath>
#include <stdexcept>
#include <string>

namespace datacom::learner {
namespace {

// Phi^-1(p) for p in (0, 1): bisection on erfc down to the last bit; used a few times a run.
double NormalQuantile(double p) {
  double low = -40, high = 40;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

double RiskMargin(double accepted_risk) {
  if (!(accepted_risk > 0 && accepted_risk < 1)) {
    throw std::invalid_argument("accepted_risk must lie between 0 and 1, not " + std::to_string(accepted_risk));
  }
  const double z = NormalQuantile(1 - accepted_risk);
  return std::exp(-0.5 * z * z) / std::sqrt(2 * std::acos(-1.0)) / accepted_risk;
}

double DiscountedBudget(double budget, int horizon, double discount) {
  const double ones = discount == 1 ? horizon : (1 - std::pow(discount, horizon)) / (1 - discount);
  return budget / horizon * ones;
}

}  // namespace datacom::learner
