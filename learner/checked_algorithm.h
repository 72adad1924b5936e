// A learning algorithm whose exceptions become a Status. The rest of the learner calls an algorithm only through this.
//
// INVALID_ARGUMENT for std::invalid_argument (a wrong configuration or state), INTERNAL for anything else that is
// thrown; the message begins with the call that failed. After an error other than Load's the algorithm's state is
// undefined. Owns the algorithm. Thread-safety and blocking are the algorithm's (learner/algorithms/algorithm.h).
#ifndef DATACOM_LEARNER_CHECKED_ALGORITHM_H_
#define DATACOM_LEARNER_CHECKED_ALGORITHM_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

class CheckedAlgorithm {
 public:
  using Maker = std::function<std::unique_ptr<Algorithm>(const AlgorithmConfig&)>;  // may throw
  static absl::StatusOr<std::unique_ptr<CheckedAlgorithm>> Make(const Maker& make, const AlgorithmConfig& config);
  explicit CheckedAlgorithm(std::unique_ptr<Algorithm> algorithm);

  absl::Status Update(const Batch& batch);
  absl::Status Pretrain(const Batch& batch);
  absl::Status ApplyEpisodes(const std::vector<EpisodeCosts>& episodes);
  absl::StatusOr<Stats> GetStats() const;
  absl::Status ResetStats();
  absl::StatusOr<ActingParameters> GetActingParameters(int member) const;
  absl::StatusOr<State> Save() const;
  absl::Status Load(const State& state);

 private:
  const std::unique_ptr<Algorithm> algorithm_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_CHECKED_ALGORITHM_H_
// SPDX-License-Identifier: Apache-2.0
