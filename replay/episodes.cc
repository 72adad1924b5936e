#include "replay/episodes.h"

#include <algorithm>
#include <set>

namespace datacom::replay {

void EpisodeTracker::Feed(uint64_t number, const char* row) {
  const uint32_t session = At<uint32_t>(row, offsets_.session);
  const uint32_t environment = At<uint32_t>(row, offsets_.environment);
  const uint32_t step = At<uint32_t>(row, offsets_.step);
  if (environment >= kMaxEnvironments) return;  // only possible in a row that was damaged on disk
  Lane& lane = lanes_[{session, environment}];
  v1::Episode& episode = lane.episode.facts;
  const uint32_t episode_number = At<uint32_t>(row, offsets_.episode);
  const bool continues = lane.open && episode_number == episode.episode() && step == episode.length();
  if (!continues) {
    if (const uint64_t invalid = InvalidBetween(lane.newest, episode_number); invalid > 0) {
      invalid_.push_back({number + 1, invalid});
      abandoned_count_ += invalid;
    }
    lane.open = step == 0;
    lane.episode = Begun(session, environment, episode_number, number);
    lane.discount_power = 1;
    has_gap_ = has_gap_ || (is_empty_ && number > 0);
    is_empty_ = false;
  }
  const bool last = At<uint8_t>(row, offsets_.last) != 0;
  lane.newest = {true, last, episode_number, step};
  if (!lane.open) return;  // its first rows were overwritten before a restart
  const double reward = At<float>(row, offsets_.reward);
  const double cost = std::max(0.0, static_cast<double>(At<float>(row, offsets_.cost)));
  episode.set_discounted_return(episode.discounted_return() + lane.discount_power * reward);
  lane.discount_power *= discount_;
  episode.set_return_(episode.return_() + reward);
  episode.set_max_violation(std::max(episode.max_violation(), cost));
  episode.set_sum_cost(episode.sum_cost() + cost);
  if (cost > 0) episode.set_violating_steps(episode.violating_steps() + 1);
  for (int i = 0; i < episode.named_sum_cost_size(); ++i) {
    const double named = std::max(0.0, static_cast<double>(At<float>(row, offsets_.named_cost + i * sizeof(float))));
    episode.set_named_max_violation(i, std::max(episode.named_max_violation(i), named));
    episode.set_named_sum_cost(i, episode.named_sum_cost(i) + named);
    if (named > 0) episode.set_named_violating_steps(i, episode.named_violating_steps(i) + 1);
  }
  for (int i = 0; i < episode.log_mean_size(); ++i) {
    episode.set_log_mean(i, episode.log_mean(i) + At<float>(row, offsets_.log + i * sizeof(float)));
  }
  episode.set_length(episode.length() + 1);
  episode.set_last_row(number + 1);
  episode.set_policy_update(At<uint64_t>(row, offsets_.policy_update));
  if (last) {
    for (double& log : *episode.mutable_log_mean()) log /= episode.length();
    finished_.push_back(lane.episode);
    ++finished_count_;
    lane.open = false;
  }
}

EpisodeSummary EpisodeTracker::Begun(uint32_t session, uint32_t environment, uint32_t number, uint64_t row) const {
  EpisodeSummary episode;
  episode.facts.set_session(session);
  episode.facts.set_environment(environment);
  episode.facts.set_episode(number);
  episode.first_row = row;
  const int costs = static_cast<int>(offsets_.named_costs);
  episode.facts.mutable_named_max_violation()->Resize(costs, 0);
  episode.facts.mutable_named_sum_cost()->Resize(costs, 0);
  episode.facts.mutable_named_violating_steps()->Resize(costs, 0);
  episode.facts.mutable_log_mean()->Resize(static_cast<int>(offsets_.logs), 0);
  return episode;
}

void EpisodeTracker::Abandon(uint32_t session) {
  const auto begin = lanes_.lower_bound({session, 0}), end = lanes_.upper_bound({session, UINT32_MAX});
  abandoned_count_ += std::count_if(begin, end, [](const auto& entry) { return entry.second.open; });
  lanes_.erase(begin, end);
}

void EpisodeTracker::AbandonAllBut(const std::vector<uint32_t>& living) {
  std::set<uint32_t> ended;
  for (const auto& [place, lane] : lanes_) {
    if (std::find(living.begin(), living.end(), place.first) == living.end()) ended.insert(place.first);
  }
  for (const uint32_t session : ended) Abandon(session);
}

void EpisodeTracker::Forget(uint64_t last_row) {
  while (!finished_.empty() && finished_.front().facts.last_row() <= last_row) finished_.pop_front();
  while (!invalid_.empty() && invalid_.front().row <= last_row) invalid_.pop_front();
}

uint64_t EpisodeTracker::InvalidBetween(const NewestRow& newest, uint32_t episode) {
  if (!newest.known || episode <= newest.episode) return 0;
  return episode - newest.episode - (newest.last ? 1 : 0);
}

uint64_t EpisodeTracker::Invalid(uint64_t after, uint64_t up_to) const {
  const auto above = [](uint64_t row, const Invalids& invalid) { return row < invalid.row; };
  uint64_t episodes = 0;
  for (auto at = std::upper_bound(invalid_.begin(), invalid_.end(), after, above);
       at != invalid_.end() && at->row <= up_to; ++at) {
    episodes += at->episodes;
  }
  return episodes;
}

std::vector<EpisodeSummary> EpisodeTracker::Finished(uint64_t after, uint64_t up_to) const {
  const auto above = [](uint64_t row, const EpisodeSummary& episode) { return row < episode.facts.last_row(); };
  const auto begin = std::upper_bound(finished_.begin(), finished_.end(), after, above);
  return {begin, std::upper_bound(begin, finished_.end(), up_to, above)};
}

NewestRow EpisodeTracker::Newest(uint32_t session, uint32_t environment) const {
  const auto found = lanes_.find({session, environment});
  return found == lanes_.end() ? NewestRow() : found->second.newest;
}

EpisodeSummary EpisodeTracker::OpenOrNext(uint32_t session, uint32_t environment) const {
  EpisodeSummary next;
  next.facts.set_session(session);
  next.facts.set_environment(environment);
  const auto found = lanes_.find({session, environment});
  if (found == lanes_.end()) return next;
  const Lane& lane = found->second;
  if (lane.open) return lane.episode;
  if (lane.newest.known) next.facts.set_episode(lane.newest.episode + 1);
  return next;
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
