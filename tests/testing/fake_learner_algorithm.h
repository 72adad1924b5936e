// A fake learning algorithm for tests of the learner around it: its numbers depend on every batch value, noise and
// delta step in order, so its state shows any row, update or episode that was lost, repeated or reordered.
#ifndef DATACOM_TESTS_TESTING_FAKE_LEARNER_ALGORITHM_H_
#define DATACOM_TESTS_TESTING_FAKE_LEARNER_ALGORITHM_H_

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

class FakeAlgorithm : public Algorithm {
 public:
  struct Applied {
    uint64_t before_update;  // updates done before the delta step, + 1
    int member, length;
  };

  explicit FakeAlgorithm(const AlgorithmConfig& config) : config_(config), members_(config.members.size()) {}

  void Update(const Batch& batch) override {
    if (updates_ + 1 == throw_at_update) throw std::runtime_error("the fake was told to fail");
    ++updates_;
    for (size_t m = 0; m < members_.size(); ++m) {
      Mix(&members_[m], batch.observation, m);
      Mix(&members_[m], batch.reward, m);
      Mix(&members_[m], batch.now.z, m);
      Mix(&members_[m], batch.noise_actor, m);
      Mix(&members_[m], batch.noise_next, m);
      members_[m].loss_sum += batch.reward[m * BatchSize(config_)];
      members_[m].loss_count += 1;
    }
  }
  void Pretrain(const Batch& batch) override {
    if (pretrained_ + 1 == throw_at_pretrain_update) throw std::runtime_error("the fake was told to fail");
    ++pretrained_;
    for (size_t m = 0; m < members_.size(); ++m) {
      Mix(&members_[m], batch.next_observation, m);
      Mix(&members_[m], batch.failure_cost, m);
      Mix(&members_[m], batch.next.z, m);
      Mix(&members_[m], batch.noise_next, m);
    }
  }
  void ApplyEpisodes(const std::vector<EpisodeCosts>& episodes) override {
    for (const EpisodeCosts& episode : episodes) {
      applied.push_back({updates_ + 1, episode.member, episode.length});
      members_[episode.member].delta += episode.costs[episode.length] + 0.001 * episode.z[0];
      members_[episode.member].delta_steps += 1;
    }
  }
  Stats GetStats() const override {
    Stats stats;
    for (const Member& member : members_) {
      const size_t index = stats.size();
      v1::MemberEpoch& shown = stats.emplace_back(NoUpdates());
      if (member.loss_count > 0) shown.set_policy_loss(member.loss_sum / member.loss_count);
      if (critic_loss && member.loss_count > 0) shown.set_critic_loss(critic_loss(index, updates_));
      if (infeasible_share && member.loss_count > 0) shown.set_infeasible_share(infeasible_share(index, updates_));
      shown.set_q_mean(updates_ + 0.5);
      shown.set_q_min(-1.5 - index);
      shown.set_q_gap(0.25);
      shown.set_actor_gradient_norm(3);
      shown.set_critic_gradient_norm(4);
      shown.set_alpha(1);
      shown.set_delta(member.delta);
      shown.set_delta_steps(static_cast<uint64_t>(member.delta_steps));
      shown.set_diverged(index == diverged_member);
    }
    return stats;
  }
  void ResetStats() override {
    for (Member& member : members_) member.loss_sum = member.loss_count = 0;
  }
  std::vector<ActingParameters> GetActingParameters() const override {
    std::vector<ActingParameters> all(members_.size());
    for (size_t m = 0; m < members_.size(); ++m) {
      all[m].arrays.push_back({"actor.mean.0.weight", {1, 2}, {static_cast<float>(members_[m].mixed), 1.0f}});
      all[m].scalars["delta"] = members_[m].delta;
    }
    return all;
  }
  State Save() const override {
    State state;
    state["updates"] = Bytes(&updates_, sizeof(updates_));
    state["pretrained"] = Bytes(&pretrained_, sizeof(pretrained_));
    state["members"] = Bytes(members_.data(), members_.size() * sizeof(Member));
    return state;
  }
  void Load(const State& state) override {
    if (state.count("members") == 0 || state.at("members").size() != members_.size() * sizeof(Member)) {
      throw std::invalid_argument("members: wrong size");
    }
    std::memcpy(&updates_, state.at("updates").data(), sizeof(updates_));
    std::memcpy(&pretrained_, state.at("pretrained").data(), sizeof(pretrained_));
    std::memcpy(static_cast<void*>(members_.data()), state.at("members").data(), members_.size() * sizeof(Member));
  }
  uint64_t throw_at_update = 0, throw_at_pretrain_update = 0;  // 0: never
  // For epochs with updates; unset: none.
  std::function<double(size_t member, uint64_t updates)> critic_loss, infeasible_share;
  size_t diverged_member = std::numeric_limits<size_t>::max();
  std::vector<Applied> applied;  // since construction; not part of the state

 private:
  struct Member {
    double mixed = 0.5, delta = 1, delta_steps = 0, loss_sum = 0, loss_count = 0;
  };
  static std::string Bytes(const void* data, size_t size) { return std::string(static_cast<const char*>(data), size); }
  // Not commutative: order matters.
  static void Mix(Member* member, const std::vector<float>& values, size_t index) {
    const size_t share = values.size() / (index + 1);
    for (size_t i = 0; i < share; ++i) member->mixed = std::fmod(member->mixed * 1.7 + values[i] + 3.0, 10.0);
  }

  const AlgorithmConfig config_;
  uint64_t updates_ = 0, pretrained_ = 0;
  std::vector<Member> members_;
};

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_TESTING_FAKE_LEARNER_ALGORITHM_H_
// SPDX-License-Identifier: Apache-2.0
