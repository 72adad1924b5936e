#include "learner/algorithms/delta.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/safety/risk.h"

namespace datacom::learner {

Delta::Delta(const AlgorithmConfig& config, bool discount_budget)
    : discount_(config.discount), gradients_(config.members.size()) {
  for (const MemberConfig& member : config.members) {
    const v1::Hyper& hyper = member.hyper;
    ScalarAdam raw;
    raw.value = std::max(hyper.init_delta(), 0.1);  // the raw value itself (learner/algorithms/README.md 5.1)
    members_.push_back(raw);
    budgets_.push_back(discount_budget ? DiscountedBudget(hyper.cost_budget(), config.horizon, config.discount)
                                       : hyper.cost_budget());
    rates_.push_back(hyper.delta_lr());
    fixed_.push_back(hyper.delta_mode() == "fixed" ? hyper.init_delta() : std::numeric_limits<double>::quiet_NaN());
  }
}

double Delta::value(int member) const {
  if (!std::isnan(fixed_[member])) return fixed_[member];
  return Softplus(members_[member].value);
}

// learner/algorithms/README.md 5.4: e_i = D_i - budget - (CVaR_i - delta), dL/dw = mean clip(e, -1, 1) * sigmoid(w).
bool Delta::ApplyEpisode(int member, int length, const float* costs, const double* cvar) {
  if (!std::isnan(fixed_[member])) return true;
  ScalarAdam& state = members_[member];
  const double delta = value(member);
  double to_go = 0, sum = 0;
  for (int i = length; i >= 0; --i) {
    const double cost = i == 0 ? 0 : (costs[i] < 0 ? 0 : static_cast<double>(costs[i]));
    to_go = cost + discount_ * to_go;
    sum += std::clamp(to_go - budgets_[member] - cvar[i] + delta, -1.0, 1.0);
  }
  const double gradient = sum / (length + 1) / (1 + std::exp(-state.value));
  if (!std::isfinite(gradient)) return false;
  gradients_[member] = gradient;
  state.Step(gradient, rates_[member]);
  return true;
}

std::string Delta::Save() const {
  return std::string(reinterpret_cast<const char*>(members_.data()), sizeof(ScalarAdam) * members_.size());
}

void Delta::Load(const std::string& bytes) { std::memcpy(members_.data(), bytes.data(), bytes.size()); }

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
