#include "learner/algorithms/slices.h"

#include <algorithm>
#include <utility>

#include "learner/algorithms/population.h"

namespace datacom::learner {

Slices::Slices(const AlgorithmConfig& config, const Maker& make)
    : team_(config.team), members_(static_cast<int>(config.members.size())) {
  const int count = std::min(team_->threads(), members_);
  slices_.resize(count);
  team_->OnWorkers(count, [&](int i) {
    Slice& slice = slices_[i];
    slice.first = i * members_ / count;
    slice.count = (i + 1) * members_ / count - slice.first;
    AlgorithmConfig part = config;
    const auto first = config.members.begin() + slice.first;
    part.members.assign(first, first + slice.count);
    part.slice_first = slice.first;
    part.population = config.members;
    slice.algorithm = make(part);
  });
}

void Slices::Update(const Batch& batch) {
  Each([&](const Slice& slice) { slice.algorithm->Update(batch); });
}

void Slices::Pretrain(const Batch& batch) {
  Each([&](const Slice& slice) { slice.algorithm->Pretrain(batch); });
}

void Slices::ApplyEpisodes(const std::vector<EpisodeCosts>& episodes) {
  if (episodes.empty()) return;
  Each([&](const Slice& slice) {
    std::vector<EpisodeCosts> own;
    for (const EpisodeCosts& episode : episodes) {
      const int member = episode.member - slice.first;
      if (member >= 0 && member < slice.count) own.push_back({member, episode.length, episode.z, episode.costs});
    }
    if (!own.empty()) slice.algorithm->ApplyEpisodes(own);
  });
}

Stats Slices::GetStats() const {
  Stats stats;
  for (const Slice& slice : slices_) {
    const Stats part = slice.algorithm->GetStats();
    stats.insert(stats.end(), part.begin(), part.end());
  }
  return stats;
}

void Slices::ResetStats() {
  for (const Slice& slice : slices_) slice.algorithm->ResetStats();
}

std::vector<ActingParameters> Slices::GetActingParameters() const {
  std::vector<ActingParameters> all;
  for (const Slice& slice : slices_) {
    for (ActingParameters& member : slice.algorithm->GetActingParameters()) all.push_back(std::move(member));
  }
  return all;
}

State Slices::Save() const {
  const std::vector<std::string> shared = shared_entries();
  State state = slices_.front().algorithm->Save();
  for (size_t i = 1; i < slices_.size(); ++i) {
    for (const auto& [name, bytes] : slices_[i].algorithm->Save()) {
      if (!std::binary_search(shared.begin(), shared.end(), name)) state[name] += bytes;
    }
  }
  return state;
}

void Slices::Load(const State& state) {
  CheckState(Save(), state);
  const std::vector<std::string> shared = shared_entries();
  Each([&](const Slice& slice) {
    State part;
    for (const auto& [name, bytes] : state) {
      const size_t size = bytes.size() / members_;
      const bool whole = std::binary_search(shared.begin(), shared.end(), name);
      part[name] = whole ? bytes : bytes.substr(slice.first * size, slice.count * size);
    }
    slice.algorithm->Load(part);
  });
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
