// The threshold delta of every member (docs/algorithms.md 5), by its delta_mode. learned: delta = softplus(w) with one
// Adam step for each finished episode. peak (5.6): a little above the largest risk that the episodes with an acceptable
// cost reach. fixed: one value. Host memory, float64; not thread-safe.
#ifndef DATACOM_LEARNER_ALGORITHMS_DELTA_H_
#define DATACOM_LEARNER_ALGORITHMS_DELTA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/config/algorithms.h"
#include "learner/algorithms/algorithm.h"
#include "learner/algorithms/scalar_adam.h"

namespace datacom::learner {

class Delta {
 public:
  explicit Delta(const AlgorithmConfig& config);
  double value(int member) const;
  // Of the last step: dloss/dw; 0 in the other modes.
  double gradient(int member) const { return members_[member].gradient; }
  uint64_t steps(int member) const { return static_cast<uint64_t>(members_[member].raw.steps); }
  // The mean undiscounted cost of an episode, J; none in modes that do not follow it or before the first episode.
  std::optional<double> cost(int member) const;
  // costs: [length + 1] raw, costs[0] counts as 0; cvar: [length + 1]. Returns false, and changes nothing, if the
  // gradient is not finite, or in mode peak the cost or a CVaR.
  bool ApplyEpisode(int member, int length, const float* costs, const double* cvar);
  // Exact bytes, equally many for each member: its ScalarAdam, and, if a member of the population is in mode peak, its
  // Peak.
  std::string Save() const;
  void Load(const std::string& bytes);  // must have the size that Save gives

 private:
  friend class ArrayAccess;  // of tests
  // What changes in mode peak; plain data, without padding.
  struct Peak {
    double weight = 0, cost = 0;  // n, J: mean cost of an episode; n is 0 before the first
    double risk = 0;              // P, mean of the largest CVaR of an acceptable episode
  };
  struct Member {
    DeltaMode mode = DeltaMode::kLearned;
    ScalarAdam raw;  // its value is w; mode peak uses only its steps
    Peak peak;
    double start = 0;
    double budget = 0, episode_budget = 0;  // discounted, and as the undiscounted cost of an episode
    double margin = 1;                      // of mode peak: delta as a multiple of P
    double rate = 0, gradient = 0;
  };
  bool FollowPeak(int length, const float* costs, const double* cvar, Member* own) const;

  double discount_ = 0;
  int horizon_ = 1;
  bool saves_peaks_ = false;
  std::vector<Member> members_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_DELTA_H_
// SPDX-License-Identifier: Apache-2.0
