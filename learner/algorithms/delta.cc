#include "learner/algorithms/delta.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/safety/risk.h"

namespace datacom::learner {
namespace {

// A budget that is discounted already stands for the cost of an episode that spends it evenly.
DeltaControl::Settings ControlOf(const v1::Hyper& hyper, const AlgorithmConfig& config, bool discount_budget) {
  const double converted = discount_budget ? 1 : DiscountedBudget(1, config.horizon, config.discount);
  DeltaControl::Settings settings;
  settings.budget = hyper.cost_budget() / converted;
  settings.cost_unit = hyper.cost_unit();
  settings.proportional = hyper.delta_proportional();
  settings.integral = hyper.delta_integral();
  settings.start = Softplus(RawStartOfDelta(hyper.init_delta()));
  settings.discount = config.discount;
  settings.horizon = config.horizon;
  return settings;
}

}  // namespace

Delta::Delta(const AlgorithmConfig& config, bool discount_budget)
    : discount_(config.discount), saves_controls_(config.controls_delta), gradients_(config.members.size()) {
  for (const MemberConfig& member : config.members) {
    const v1::Hyper& hyper = member.hyper;
    ScalarAdam raw;
    raw.value = RawStartOfDelta(hyper.init_delta());
    members_.push_back(raw);
    budgets_.push_back(discount_budget ? DiscountedBudget(hyper.cost_budget(), config.horizon, config.discount)
                                       : hyper.cost_budget());
    rates_.push_back(hyper.delta_lr());
    fixed_.push_back(hyper.delta_mode() == "fixed" ? hyper.init_delta() : std::numeric_limits<double>::quiet_NaN());
    controls_.emplace_back();
    if (hyper.delta_mode() != "controlled") continue;
    controls_.back().emplace(ControlOf(hyper, config, discount_budget));
    saves_controls_ = true;
  }
}

double Delta::value(int member) const {
  if (!std::isnan(fixed_[member])) return fixed_[member];
  return controls_[member] ? controls_[member]->value() : Softplus(members_[member].value);
}

double Delta::raw(int member) const {
  return controls_[member] ? controls_[member]->state().integral : members_[member].value;
}

void Delta::set_raw(int member, double raw) {
  if (!controls_[member]) {
    members_[member].value = raw;
    return;
  }
  DeltaControl::State state = controls_[member]->state();
  state.integral = raw;
  controls_[member]->set_state(state);
}

// learner/algorithms/README.md 5.4: e_i = D_i - budget - (CVaR_i - delta), dL/dw = mean clip(e, -1, 1) * sigmoid(w).
bool Delta::ApplyEpisode(int member, int length, const float* costs, const double* cvar) {
  if (!std::isnan(fixed_[member])) return true;
  ScalarAdam& state = members_[member];
  if (controls_[member]) {
    if (!controls_[member]->ApplyEpisode(length, costs, cvar)) return false;
    gradients_[member] = controls_[member]->push();
    state.steps += 1;
    return true;
  }
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
  std::string bytes;
  const auto add = [&bytes](const auto& part) { bytes.append(reinterpret_cast<const char*>(&part), sizeof part); };
  for (size_t m = 0; m < members_.size(); ++m) {
    add(members_[m]);
    if (saves_controls_) add(controls_[m] ? controls_[m]->state() : DeltaControl::State{});
  }
  return bytes;
}

void Delta::Load(const std::string& bytes) {
  const char* from = bytes.data();
  const auto take = [&from](auto* part) {
    std::memcpy(part, from, sizeof *part);
    from += sizeof *part;
  };
  for (size_t m = 0; m < members_.size(); ++m) {
    take(&members_[m]);
    DeltaControl::State state;
    if (saves_controls_) take(&state);
    if (controls_[m]) controls_[m]->set_state(state);
  }
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
