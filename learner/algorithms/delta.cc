#include "learner/algorithms/delta.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/safety/risk.h"
#include "learner/algorithms/episode_cost.h"

namespace datacom::learner {

bool DeltaPeak::ApplyEpisode(int length, const float* costs, const double* cvar) {
  const double total = CostOfEpisode(length, costs);
  double peak = 0;
  for (int i = 0; i <= length; ++i) {
    if (!std::isfinite(cvar[i])) return false;
    peak = std::max(peak, cvar[i]);
  }
  if (!std::isfinite(total)) return false;
  constexpr double kRate = 0.05;  // of an episode of H rows
  const bool first = state_.weight == 0;
  const double share = ShareOfHorizon(length, settings_.horizon);
  AddToMean(total, share, &state_.weight, &state_.cost);
  if (first) {
    state_.peak = peak;
  } else if (total <= std::max(settings_.budget, state_.cost)) {
    state_.peak += kRate * share * (peak - state_.peak);
  }
  return true;
}

Delta::Delta(const AlgorithmConfig& config) : discount_(config.learner.discount()) {
  const std::vector<MemberConfig>& all = PopulationOf(config);
  saves_peaks_ = std::any_of(all.begin(), all.end(),
                             [](const MemberConfig& member) { return DeltaModeOf(member.hyper) == DeltaMode::kPeak; });
  const bool discounted = FindAlgorithm(config.algorithm)->discounted_budget;
  for (const MemberConfig& own : config.members) {
    const v1::Hyper& hyper = own.hyper;
    const DeltaMode mode = DeltaModeOf(hyper);
    Member& member = members_.emplace_back();
    member.raw.value = RawStartOfDelta(hyper.init_delta());
    member.budget = discounted ? hyper.cost_budget()
                               : DiscountedBudget(hyper.cost_budget(), config.horizon, config.learner.discount());
    member.rate = hyper.delta_lr();
    if (mode == DeltaMode::kFixed) member.fixed = hyper.init_delta();
    if (mode == DeltaMode::kPeak) {
      member.peak.emplace(DeltaPeak::Settings{EpisodeBudget(hyper, config), hyper.delta_margin(),
                                              Softplus(member.raw.value), member.budget, config.horizon});
    }
  }
}

double Delta::value(int member) const {
  const Member& own = members_[member];
  if (own.fixed) return *own.fixed;
  return own.peak ? own.peak->value() : Softplus(own.raw.value);
}

double Delta::raw(int member) const {
  const Member& own = members_[member];
  return own.peak ? own.peak->state().peak : own.raw.value;
}

void Delta::set_raw(int member, double raw) {
  Member& own = members_[member];
  if (own.peak) {
    DeltaPeak::State state = own.peak->state();
    state.peak = raw;
    own.peak->set_state(state);
  } else {
    own.raw.value = raw;
  }
}

std::optional<double> Delta::cost(int member) const {
  const Member& own = members_[member];
  if (own.peak && own.peak->state().weight > 0) return own.peak->state().cost;
  return std::nullopt;
}

// docs/algorithms.md 5.4: e_i = D_i - budget - (CVaR_i - delta), dL/dw = mean clip(e, -1, 1) * sigmoid(w).
bool Delta::ApplyEpisode(int member, int length, const float* costs, const double* cvar) {
  Member& own = members_[member];
  if (own.fixed) return true;
  if (own.peak) {
    if (!own.peak->ApplyEpisode(length, costs, cvar)) return false;
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
    if (saves_peaks_) add(member.peak ? member.peak->state() : DeltaPeak::State{});
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
    DeltaPeak::State peak;
    if (saves_peaks_) take(&peak);
    if (member.peak) member.peak->set_state(peak);
  }
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
