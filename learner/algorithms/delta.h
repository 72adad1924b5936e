// The threshold delta of every member (docs/algorithms.md 5): delta = softplus(w) with one Adam step for each
// finished episode, a little above the risk of acceptable episodes (DeltaPeak), or a fixed value. Host memory, float64;
// not thread-safe.
#ifndef DATACOM_LEARNER_ALGORITHMS_DELTA_H_
#define DATACOM_LEARNER_ALGORITHMS_DELTA_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/config/algorithms.h"
#include "learner/algorithms/algorithm.h"
#include "learner/algorithms/scalar_adam.h"

namespace datacom::learner {

// The threshold delta of one member in mode "peak" (docs/algorithms.md 5.6): a little above the largest risk that the
// episodes with an acceptable cost reach. Host memory, float64; a value type, not thread-safe.
class DeltaPeak {
 public:
  struct Settings {
    double budget = 0;    // undiscounted, of an episode
    double margin = 1.1;  // delta as a multiple of the peak; at least 1
    double start = 0;     // delta before the first episode
    double least = 0;     // delta is at least the discounted budget
    int horizon = 1;
  };
  // All that changes; plain data, without padding.
  struct State {
    double weight = 0, cost = 0;  // n, J: mean cost of an episode; n is 0 before the first
    double peak = 0;              // P, mean of the largest CVaR of an acceptable episode
  };

  explicit DeltaPeak(const Settings& settings) : settings_(settings) {}
  double value() const {
    return state_.weight == 0 ? settings_.start : std::max(settings_.margin * state_.peak, settings_.least);
  }
  // costs: [length + 1] raw, costs[0] counts as 0; cvar: [length + 1]. Returns false, and changes nothing, if the cost
  // or a CVaR is not finite.
  bool ApplyEpisode(int length, const float* costs, const double* cvar);
  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  Settings settings_;
  State state_;
};

class Delta {
 public:
  explicit Delta(const AlgorithmConfig& config);
  double value(int member) const;
  double raw(int member) const;  // w, or P of mode peak
  void set_raw(int member, double raw);
  // Of the last step: dloss/dw; 0 in the other modes.
  double gradient(int member) const { return members_[member].gradient; }
  uint64_t steps(int member) const { return static_cast<uint64_t>(members_[member].raw.steps); }
  // The mean undiscounted cost of an episode, J; none in modes that do not follow it or before the first episode.
  std::optional<double> cost(int member) const;
  // costs: [length + 1] raw, costs[0] counts as 0; cvar: [length + 1]. Returns false, and changes nothing, if the
  // gradient, or what DeltaPeak sees, is not finite.
  bool ApplyEpisode(int member, int length, const float* costs, const double* cvar);
  // Exact bytes, equally many for each member: its ScalarAdam, and, if a member of the population is in mode peak, the
  // state of its DeltaPeak.
  std::string Save() const;
  void Load(const std::string& bytes);  // must have the size that Save gives

 private:
  struct Member {
    ScalarAdam raw;     // its value is w; mode peak uses only its steps
    double budget = 0;  // discounted
    double rate = 0, gradient = 0;
    std::optional<double> fixed;
    std::optional<DeltaPeak> peak;
  };

  double discount_ = 0;
  bool saves_peaks_ = false;
  std::vector<Member> members_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_DELTA_H_
// SPDX-License-Identifier: Apache-2.0
