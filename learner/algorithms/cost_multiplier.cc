#include "learner/algorithms/cost_multiplier.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace datacom::learner {

CostMultiplier::CostMultiplier(const AlgorithmConfig& config)
    : members_(config.members.size()), proposed_(config.members.size()) {
  for (Member& member : members_) member.multiplier.value = kStart;
  for (const MemberConfig& member : config.members) {
    limits_.push_back(member.hyper.cost_budget());
    rates_.push_back(member.hyper.multiplier_lr());
  }
}

void CostMultiplier::AddEpisode(int member, int length, const float* costs) {
  double sum = 0;
  for (int i = 0; i < length; ++i) sum += costs[i] < 0 ? 0 : static_cast<double>(costs[i]);
  Member& state = members_[member];
  state.costs[static_cast<int>(std::fmod(state.episodes, kWindow))] = sum;
  state.episodes += 1;
}

// The loss is multiplier (limit - mean cost).
double CostMultiplier::Propose(int member) {
  const Member& state = members_[member];
  ScalarAdam& next = proposed_[member];
  next = state.multiplier;
  const int count = static_cast<int>(std::min<double>(state.episodes, kWindow));
  if (count == 0) return next.value;
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += state.costs[i];
  next.Step(limits_[member] - sum / count, rates_[member]);
  if (next.value < 0) next.value = 0;
  return next.value;
}

std::string CostMultiplier::Save() const {
  return std::string(reinterpret_cast<const char*>(members_.data()), sizeof(Member) * members_.size());
}

void CostMultiplier::Load(const std::string& bytes) { std::memcpy(members_.data(), bytes.data(), bytes.size()); }

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
