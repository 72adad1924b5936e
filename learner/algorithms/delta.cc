#include "learner/algorithms/delta.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/safety/risk.h"
#include "learner/algorithms/episode_cost.h"

namespace datacom::learner {

Delta::Delta(const AlgorithmConfig& config) : discount_(config.learner.discount()), horizon_(config.horizon) {
  const std::vector<MemberConfig>& all = PopulationOf(config);
  saves_peaks_ = std::any_of(all.begin(), all.end(),
                             [](const MemberConfig& member) { return DeltaModeOf(member.hyper) == DeltaMode::kPeak; });
  const bool discounted = FindAlgorithm(config.algorithm)->discounted_budget;
  for (const MemberConfig& own : config.members) {
    const v1::Hyper& hyper = own.hyper;
    Member& member = members_.emplace_back();
    member.mode = DeltaModeOf(hyper);
    member.raw.value = RawStartOfDelta(hyper.init_delta());
    member.start = member.mode == DeltaMode::kFixed ? hyper.init_delta() : Softplus(member.raw.value);
    member.budget = discounted ? hyper.cost_budget() : DiscountedBudget(hyper.cost_budget(), horizon_, discount_);
    member.episode_budget = EpisodeBudget(hyper, config);
    member.margin = hyper.delta_margin();
    member.rate = hyper.delta_lr();
  }
}

double Delta::value(int member) const {
  const Member& own = members_[member];
  if (own.mode == DeltaMode::kLearned) return Softplus(own.raw.value);
  if (own.mode == DeltaMode::kFixed || own.peak.weight == 0) return own.start;
  return std::max(own.margin * own.peak.risk, own.budget);
}

std::optional<double> Delta::cost(int member) const {
  const Peak& peak = members_[member].peak;  // of other modes as at the start
  return peak.weight > 0 ? std::optional<double>(peak.cost) : std::nullopt;
}

// docs/algorithms.md 5.4: e_i = D_i - budget - (CVaR_i - delta), dL/dw = mean clip(e, -1, 1) * sigmoid(w).
bool Delta::ApplyEpisode(int member, int length, const float* costs, const double* cvar) {
  Member& own = members_[member];
  if (own.mode == DeltaMode::kFixed) return true;
  if (own.mode == DeltaMode::kPeak) return FollowPeak(length, costs, cvar, &own);
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

bool Delta::FollowPeak(int length, const float* costs, const double* cvar, Member* own) const {
  const double total = CostOfEpisode(length, costs);
  double largest = 0;
  for (int i = 0; i <= length; ++i) {
    if (!std::isfinite(cvar[i])) return false;
    largest = std::max(largest, cvar[i]);
  }
  if (!std::isfinite(total)) return false;
  constexpr double kRate = 0.05;  // of an episode of H rows
  Peak& peak = own->peak;
  const bool first = peak.weight == 0;
  const double share = ShareOfHorizon(length, horizon_);
  AddToMean(total, share, &peak.weight, &peak.cost);
  if (first) {
    peak.risk = largest;
  } else if (total <= std::max(own->episode_budget, peak.cost)) {
    peak.risk += kRate * share * (largest - peak.risk);
  }
  own->raw.steps += 1;
  return true;
}

std::string Delta::Save() const {
  std::string bytes;
  const auto add = [&bytes](const auto& part) { bytes.append(reinterpret_cast<const char*>(&part), sizeof part); };
  for (const Member& member : members_) {
    add(member.raw);
    if (saves_peaks_) add(member.peak);
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
    if (saves_peaks_) take(&member.peak);
  }
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
