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

absl::StatusOr<Stats> CheckedAlgorithm::GetStats() const {
  Stats stats;
  RETURN_IF_ERROR(Catch("statistics", [&] { stats = algorithm_->GetStats(); }));
  return stats;
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
