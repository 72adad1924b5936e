#include "common/acting/plan_refit.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace datacom {
namespace {

constexpr double kEpisodeSteps = 1000;
constexpr double kReturnSharpness = 10, kCostSharpness = 100;
constexpr double kLargestVariance = 2;

}  // namespace

PlanScores::PlanScores(const PlanSize& size)
    : size_(size), returns_(size.candidates), costs_(size.candidates), worst_(size.horizon * size.candidates) {}

void PlanScores::Begin() {
  std::fill(returns_.begin(), returns_.end(), 0.0);
  std::fill(worst_.begin(), worst_.end(), -std::numeric_limits<double>::infinity());
}

void PlanScores::Add(int step, const float* rewards, const double* costs) {
  double* const worst = &worst_[step * size_.candidates];
  for (int a = 0; a < size_.candidates; ++a) {
    returns_[a] += rewards[a];
    worst[a] = std::max(worst[a], costs[a]);
  }
}

void PlanScores::AddValues(const float* values) {
  for (int a = 0; a < size_.candidates; ++a) returns_[a] += values[a];
}

void PlanScores::Finish(int particles) {
  const double scale = kEpisodeSteps / size_.horizon;
  for (int a = 0; a < size_.candidates; ++a) {
    returns_[a] *= scale / particles;
    costs_[a] = 0;
    for (int step = 0; step < size_.horizon; ++step) costs_[a] += worst_[step * size_.candidates + a];
    costs_[a] *= scale;
  }
}

int RefitPlan(const PlanSize& size, const PlanWeighing& weighing, const float* actions, const PlanScores& scores,
              double* weights, double* mean, double* variance) {
  const std::vector<double>&costs = scores.costs(), &returns = scores.returns();
  const auto feasible = [&](int a) { return costs[a] <= weighing.cost_limit; };
  int count = 0;
  for (int a = 0; a < size.candidates; ++a) count += feasible(a);
  const bool by_return = count >= weighing.min_feasible;
  // Infeasible candidates are left out; -infinity gives them the weight 0.
  for (int a = 0; a < size.candidates; ++a) {
    weights[a] = !by_return                                         ? -kCostSharpness * costs[a]
                 : feasible(a) || (weighing.repeat_first && a == 0) ? kReturnSharpness * returns[a]
                                                                    : -std::numeric_limits<double>::infinity();
  }
  const double largest = *std::max_element(weights, weights + size.candidates);
  double total = 0;
  for (int a = 0; a < size.candidates; ++a) {
    weights[a] = std::exp(weights[a] - largest);
    if (by_return && weighing.repeat_first && a == 0) weights[a] *= count + feasible(a);
    total += weights[a];
  }
  const int n = size.action_dim;
  for (int i = 0; i < size.horizon * n; ++i) {
    const float* const action = actions + (i / n) * size.candidates * n + i % n;
    mean[i] = variance[i] = 0;
    for (int a = 0; a < size.candidates; ++a) mean[i] += weights[a] / total * action[a * n];
    for (int a = 0; a < size.candidates; ++a) {
      variance[i] += weights[a] / total * (action[a * n] - mean[i]) * (action[a * n] - mean[i]);
    }
    variance[i] = std::min(variance[i], kLargestVariance);
  }
  return count;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
