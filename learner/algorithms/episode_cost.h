// The undiscounted cost of finished episodes, as delta and the multiplier follow it
// (docs/algorithms.md 5.6 and 6.1). Pure functions.
#ifndef DATACOM_LEARNER_ALGORITHMS_EPISODE_COST_H_
#define DATACOM_LEARNER_ALGORITHMS_EPISODE_COST_H_

#include <algorithm>

#include "common/config/algorithms.h"
#include "common/safety/risk.h"
#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

// The cost of state i of an episode; costs[0] counts as 0.
inline double CostOf(const float* costs, int i) { return i == 0 || costs[i] < 0 ? 0 : static_cast<double>(costs[i]); }

// costs: [length + 1] raw.
inline double CostOfEpisode(int length, const float* costs) {
  double total = 0;
  for (int i = 0; i <= length; ++i) total += CostOf(costs, i);
  return total;
}

// w, the share of an episode of the whole horizon.
inline double ShareOfHorizon(int length, int horizon) { return std::min(static_cast<double>(length) / horizon, 1.0); }

// J, the mean of the costs of episodes, with the weight n of those that count; n is 0 before the first.
inline void AddToMean(double total, double share, double* weight, double* mean) {
  constexpr double kRate = 0.1;
  *weight = (1 - kRate * share) * *weight + kRate;
  *mean += kRate / *weight * (total - *mean);
}

// e, the excess of the mean cost over the budget in units of `scale`, within [-1, 1].
inline double RelativeError(double mean, double budget, double scale) {
  return std::clamp((mean - budget) / scale, -1.0, 1.0);
}

// cost_budget as the undiscounted cost of an episode. One that is discounted already stands for an episode that spends
// it evenly.
inline double EpisodeBudget(const v1::Hyper& hyper, const AlgorithmConfig& config) {
  const bool discounted = FindAlgorithm(config.algorithm)->discounted_budget;
  return hyper.cost_budget() / (discounted ? DiscountedBudget(1, config.horizon, config.learner.discount()) : 1);
}

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_EPISODE_COST_H_
// SPDX-License-Identifier: Apache-2.0
