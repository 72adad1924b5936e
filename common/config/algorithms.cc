#include "common/config/experiment.h"

namespace datacom {

const std::vector<AlgorithmInfo>& Algorithms() {
  // name, one sentence, acting rule, learns delta, pre-trains, has a budget, takes new rows, is on-policy
  static const auto* const kAlgorithms = new std::vector<AlgorithmInfo>{
      {"datacom", "D-ATACOM: SAC on the tangent space of a learned, risk-aware long-term constraint (Gaussian FVF)",
       "safe_map", true, true, true},
      {"iqn_datacom", "IQN-ATACOM: D-ATACOM on a quantile of an implicit quantile network instead of a Gaussian's CVaR",
       "safe_map", true, true, true},
      {"atacom_fi", "SAC through a safe map of the task's known constraints, made forward invariant", "atacom_fi",
       false, true},
      {"atacom_nfi", "SAC through a safe map of the task's known constraints, not made forward invariant", "atacom_nfi",
       false, true},
      {"sac", "Soft actor-critic without any constraint: the unsafe baseline", "gaussian_policy", false, true},
      {"lag_sac", "SAC whose actor loss includes expected discounted cost, weighted by a Lagrange multiplier",
       "gaussian_policy", false, true, true},
      {"wcsac", "LagSAC on the CVaR of a Gaussian over discounted cost instead of its expectation", "gaussian_policy",
       false, true, true},
      {"cbf_sac", "SAC whose actions a quadratic programme filters with a learned control barrier function", "cbf_qp",
       false, true},
      {"safe_layer_td3", "TD3 whose actions are projected by a learned linear model of the next step's cost",
       "safe_layer", false, false},
      {"ppo_lag",
       "Proximal policy optimisation of reward minus cost, weighed by a Lagrange multiplier; an update is an epoch",
       "normalised_gaussian", false, false, true, true, true},
      {"rcpo", "Natural policy gradient of reward minus cost, weighed by a Lagrange multiplier; an update is an epoch",
       "normalised_gaussian", false, false, true, true, true},
      {"safe_loop", "Plans by imagined episodes in a learned ensemble of dynamics, within the known cost of the task",
       "planner", false, false, true, true},
  };
  return *kAlgorithms;
}

const AlgorithmInfo* FindAlgorithm(const std::string& name) {
  for (const AlgorithmInfo& algorithm : Algorithms()) {
    if (name == algorithm.name) return &algorithm;
  }
  return nullptr;
}

std::vector<std::string> AlgorithmNames() {
  std::vector<std::string> names;
  for (const AlgorithmInfo& algorithm : Algorithms()) names.emplace_back(algorithm.name);
  return names;
}

}  // namespace datacom
