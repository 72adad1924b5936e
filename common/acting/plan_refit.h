// How a planner judges candidate plans and fits its next distribution to them (docs/algorithms.md 19.3).
//
// A plan is `horizon` actions. Each candidate is imagined by several particles; PlanScores adds up what they meet.
// RefitPlan weighs the candidates:
//   at least `min_feasible` of them cost at most cost_limit: only these count, exp(10 (return - largest return));
//   otherwise all count, exp(-100 (cost - smallest cost)).
// Returns and costs count 1000 steps at the plan's mean rate, undiscounted; costs are signed.
// Not thread-safe; allocates only in the constructor.
#ifndef DATACOM_COMMON_ACTING_PLAN_REFIT_H_
#define DATACOM_COMMON_ACTING_PLAN_REFIT_H_

#include <vector>

namespace datacom {

struct PlanSize {
  int horizon = 0, candidates = 0, action_dim = 0;
};

// Return and cost of every candidate.
class PlanScores {
 public:
  explicit PlanScores(const PlanSize& size);
  void Begin();
  // One particle of every candidate reaches step `step` of the plan: rewards, costs [candidates].
  void Add(int step, const float* rewards, const double* costs);
  // The same particle's value at the end of the plan, [candidates].
  void AddValues(const float* values);
  void Finish(int particles);  // for each candidate; the results below are valid after it

  const std::vector<double>& returns() const { return returns_; }  // mean over the particles
  const std::vector<double>& costs() const { return costs_; }      // sum over the steps of the worst particle's cost

 private:
  const PlanSize size_;
  std::vector<double> returns_, costs_;  // [candidates]
  std::vector<double> worst_;            // [horizon, candidates]
};

struct PlanWeighing {
  double cost_limit = 0;
  int min_feasible = 0;
  // The released code adds candidate 0 once more for every feasible candidate. Only for its recorded cases.
  bool repeat_first = false;
};

// actions: [horizon, candidates, action_dim]; weights: [candidates], workspace; mean, variance: [horizon, action_dim]
// of the weighted candidates, the variance at most 2. Returns the number of feasible candidates.
int RefitPlan(const PlanSize& size, const PlanWeighing& weighing, const float* actions, const PlanScores& scores,
              double* weights, double* mean, double* variance);

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_PLAN_REFIT_H_
// SPDX-License-Identifier: Apache-2.0
