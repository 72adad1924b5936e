#include "learner/checked_algorithm.h"

#include <exception>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace datacom::learner {
namespace {

template <typename Body>
absl::Status Catch(const char* what, Body body) {
  try {
    body();
    return absl::OkStatus();
  } catch (const std::invalid_argument& error) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", error.what()));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(what, ": ", error.what()));
  } catch (...) {
    return absl::InternalError(absl::StrCat(what, ": an exception that is not a std::exception"));
  }
}

void CopyStats(const Stats& stats, int member, v1::MemberEpoch* to) {
  to->set_policy_loss(stats.policy_loss[member]);
  to->set_critic_loss(stats.critic_loss[member]);
  to->set_constraint_loss(stats.constraint_loss[member]);
  to->set_constraint_mean(stats.constraint_mean[member]);
  to->set_entropy(stats.entropy[member]);
  to->set_delta(stats.delta[member]);
  to->set_alpha(stats.alpha[member]);
  to->set_multiplier(stats.multiplier[member]);
  to->set_q_mean(stats.q_mean[member]);
  to->set_q_min(stats.q_min[member]);
  to->set_q_gap(stats.q_gap[member]);
  to->set_actor_gradient_norm(stats.actor_gradient_norm[member]);
  to->set_critic_gradient_norm(stats.critic_gradient_norm[member]);
  to->set_constraint_gradient_norm(stats.constraint_gradient_norm[member]);
  to->set_delta_steps(stats.delta_steps[member]);
  to->set_diverged(stats.diverged[member] != 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckedAlgorithm>> CheckedAlgorithm::Make(const Maker& make,
                                                                         const AlgorithmConfig& config) {
  std::unique_ptr<Algorithm> algorithm;
  RETURN_IF_ERROR(Catch("making the algorithm", [&] { algorithm = make(config); }));
  return std::make_unique<CheckedAlgorithm>(std::move(algorithm));
}

CheckedAlgorithm::CheckedAlgorithm(std::unique_ptr<Algorithm> algorithm) : algorithm_(std::move(algorithm)) {}

absl::Status CheckedAlgorithm::Update(const Batch& batch) {
  return Catch("update", [&] { algorithm_->Update(batch); });
}

absl::Status CheckedAlgorithm::Pretrain(const Batch& batch) {
  return Catch("pre-training update", [&] { algorithm_->Pretrain(batch); });
}

absl::Status CheckedAlgorithm::ApplyEpisodes(const std::vector<EpisodeCosts>& episodes) {
  return Catch("delta step", [&] { algorithm_->ApplyEpisodes(episodes); });
}

absl::StatusOr<EpochStats> CheckedAlgorithm::GetStats() const {
  Stats stats;
  RETURN_IF_ERROR(Catch("statistics", [&] { stats = algorithm_->GetStats(); }));
  EpochStats members(stats.diverged.size());
  for (size_t m = 0; m < members.size(); ++m) CopyStats(stats, static_cast<int>(m), &members[m]);
  return members;
}

absl::Status CheckedAlgorithm::ResetStats() {
  return Catch("resetting statistics", [&] { algorithm_->ResetStats(); });
}

absl::StatusOr<ActingParameters> CheckedAlgorithm::GetActingParameters(int member) const {
  ActingParameters parameters;
  RETURN_IF_ERROR(Catch("taking a snapshot", [&] { parameters = algorithm_->GetActingParameters(member); }));
  return parameters;
}

absl::StatusOr<State> CheckedAlgorithm::Save() const {
  State state;
  RETURN_IF_ERROR(Catch("saving the algorithm's state", [&] { state = algorithm_->Save(); }));
  return state;
}

absl::Status CheckedAlgorithm::Load(const State& state) {
  return Catch("loading the algorithm's state", [&] { algorithm_->Load(state); });
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
