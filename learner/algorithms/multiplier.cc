#include "learner/algorithms/multiplier.h"

#include <algorithm>
#include <cstring>

#include "learner/algorithms/episode_cost.h"

namespace datacom::learner {
namespace {

constexpr double kSilentEpisodes = 50;  // of H rows: the policy learns first

bool HasMultiplier(const MemberConfig& member) { return member.hyper.multiplier_mode() == "pi"; }

}  // namespace

Multiplier::Multiplier(const AlgorithmConfig& config) : horizon_(config.horizon), states_(config.members.size()) {
  for (const MemberConfig& member : config.members) {
    const v1::Hyper& hyper = member.hyper;
    Settings& settings = settings_.emplace_back();
    if (!HasMultiplier(member)) continue;
    settings.budget = EpisodeBudget(hyper, config);
    settings.scale = std::max(settings.budget, hyper.cost_unit());
    settings.proportional = hyper.multiplier_proportional();
    settings.integral = hyper.multiplier_integral();
    settings.limit = hyper.multiplier_limit();
  }
}

bool Multiplier::IsUsed(const AlgorithmConfig& config) {
  const std::vector<MemberConfig>& members = PopulationOf(config);
  return std::any_of(members.begin(), members.end(), HasMultiplier);
}

double Multiplier::value(int member) const {
  const Settings& settings = settings_[member];
  const State& state = states_[member];
  if (state.episodes < kSilentEpisodes) return 0;
  const double error = RelativeError(state.cost, settings.budget, settings.scale);
  const double fade = std::min(1.0, state.cost / settings.scale);
  return fade * std::clamp(settings.proportional * error + state.integral, 0.0, settings.limit);
}

void Multiplier::ApplyEpisode(int member, int length, double total) {
  const Settings& settings = settings_[member];
  State& state = states_[member];
  const double share = ShareOfHorizon(length, horizon_);
  AddToMean(total, share, &state.weight, &state.cost);
  state.episodes += share;
  if (state.episodes < kSilentEpisodes) return;
  const double error = RelativeError(state.cost, settings.budget, settings.scale);
  state.integral = std::clamp(state.integral + settings.integral * share * error, 0.0, settings.limit);
}

std::string Multiplier::Save() const {
  return {reinterpret_cast<const char*>(states_.data()), states_.size() * sizeof(State)};
}

void Multiplier::Load(const std::string& bytes) { std::memcpy(states_.data(), bytes.data(), bytes.size()); }

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
