// What a member's cost is judged by: the risk it may take and the budget it has. Pure functions.
#ifndef DATACOM_LEARNER_ALGORITHMS_RISK_H_
#define DATACOM_LEARNER_ALGORITHMS_RISK_H_

namespace datacom::learner {

// phi(Phi^-1(1 - rho)) / rho: what a Gaussian's standard deviation counts in its CVaR at accepted risk rho
// (algorithms.md 4). Throws std::invalid_argument where rho does not lie between 0 and 1.
double RiskMargin(double accepted_risk);

// Budget/H * (1 - gamma^H)/(1 - gamma): an undiscounted episode budget in discounted cost (algorithms.md 5.2).
double DiscountedBudget(double budget, int horizon, double discount);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_RISK_H_
