#include "learner/algorithms/delta.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/config/algorithms.h"
#include "common/safety/risk.h"

namespace datacom::learner {
namespace {

// A budget that is discounted already stands for the cost of an episode that spends it evenly.
DeltaControl::Settings ControlOf(const v1::Hyper& hyper, const AlgorithmConfig& config, bool discounted_budget) {
  const double share = discounted_budget ? DiscountedBudget(1, config.horizon, config.discount) : 1;
  DeltaControl::Settings settings;
  settings.budget = hyper.cost_budget() / share;
  settings.cost_unit = hyper.cost_unit();
  settings.proportional = hyper.delta_proportional();
  settings.integral = hyper.delta_integral();
  settings.start = Softplus(RawStartOfDelta(hyper.init_delta()));
  settings.discount = config.discount;
  settings.horizon = config.horizon;
  return settings;
}

}  // namespace

bool AnyControlled(const std::vector<MemberConfig>& members) {
  return std::any_of(members.begin(), members.end(),
                     [](const MemberConfig& member) { return DeltaModeOf(member.hyper) == DeltaMode::kControlled; });
}

Delta::Delta(const AlgorithmConfig& config)
    : discount_(config.discount), saves_controls_(config.controls_delta || AnyControlled(config.members)) {
  const bool discounted = FindAlgorithm(config.algorithm)->discounted_budget;
  for (const MemberConfig& own : config.members) {
    const v1::Hyper& hyper = own.hyper;
    const DeltaMode mode = DeltaModeOf(hyper);
    Member& member = members_.emplace_back();
    member.raw.value = RawStartOfDelta(hyper.init_delta());
    member.budget =
        discounted ? hyper.cost_budget() : DiscountedBudget(hyper.cost_budget(), config.horizon, config.discount);
    member.rate = hyper.delta_lr();
    if (mode == DeltaMode::kFixed) member.fixed = hyper.init_delta();
    if (mode == DeltaMode::kControlled) member.control.emplace(ControlOf(hyper, config, discounted));
  }
}

double Delta::value(int member) const {
  const Member& own = members_[member];
  if (own.fixed) return *own.fixed;
  return own.control ? own.control->value() : Softplus(own.raw.value);
}

double Delta::raw(int member) const {
  const Member& own = members_[member];
  return own.control ? own.control->state().integral : own.raw.value;
}

void Delta::set_raw(int member, double raw) {
  Member& own = members_[member];
  if (!own.control) {
    own.raw.value = raw;
    return;
  }
  DeltaControl::State state = own.control->state();
  state.integral = raw;
  own.control->set_state(state);
}

// docs/algorithms.md 5.4: e_i = D_i - budget - (CVaR_i - delta), dL/dw = mean clip(e, -1, 1) * sigmoid(w).
bool Delta::ApplyEpisode(int member, int length, const float* costs, const double* cvar) {
  Member& own = members_[member];
  if (own.fixed) return true;
  if (own.control) {
    if (!own.control->ApplyEpisode(length, costs, cvar)) return false;
    own.gradient = own.control->push();
    own.raw.steps += 1;
    return true;
  }
  const double delta = value(member);
  double to_go = 0, sum = 0;
  for (int i = length; i >= 0; --i) {
    to_go = CostOf(costs, i) + discount_ * to_go;
    sum += std::clamp(to_go - own.budget - cvar[i] + delta, -1.0, 1.0);
  }
  const double gradient = sum / (length + 1) / (1 + std::exp(-own.raw.value));
  if (!std::isfinite(gradient)) return false;
  own.gradient = gradient;
  own.raw.Step(gradient, own.rate);
  return true;
}

std::string Delta::Save() const {
  std::string bytes;
  const auto add = [&bytes](const auto& part) { bytes.append(reinterpret_cast<const char*>(&part), sizeof part); };
  for (const Member& member : members_) {
    add(member.raw);
    if (saves_controls_) add(member.control ? member.control->state() : DeltaControl::State{});
  }
  return bytes;
}

void Delta::Load(const std::string& bytes) {
  const char* from = bytes.data();
  const auto take = [&from](auto* part) {
    std::memcpy(part, from, sizeof *part);
    from += sizeof *part;
  };
  for (Member& member : members_) {
    take(&member.raw);
    DeltaControl::State state;
    if (saves_controls_) take(&state);
    if (member.control) member.control->set_state(state);
  }
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
