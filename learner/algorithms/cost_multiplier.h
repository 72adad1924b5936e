// The Lagrange multiplier of PPOLag and RCPO for every member (docs/algorithms.md 18.4): one step of Adam per
// update on the mean cost of the newest episodes, then raised to 0 if negative. Host memory, float64; not thread-safe.
#ifndef DATACOM_LEARNER_ALGORITHMS_COST_MULTIPLIER_H_
#define DATACOM_LEARNER_ALGORITHMS_COST_MULTIPLIER_H_

#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"
#include "learner/algorithms/scalar_adam.h"

namespace datacom::learner {

class CostMultiplier {
 public:
  static constexpr int kWindow = 50;       // newest finished episodes
  static constexpr double kStart = 0.001;  // first value

  explicit CostMultiplier(const AlgorithmConfig& config);
  double value(int member) const { return members_[member].multiplier.value; }
  void set_value(int member, double value) { members_[member].multiplier.value = value; }
  // costs: [length] of a finished episode, raw. Their positive parts add up to the episode's cost.
  void AddEpisode(int member, int length, const float* costs);
  // Returns the value after the next step, and changes nothing that Save shows before Keep takes the step. A member
  // without a finished episode keeps its value.
  double Propose(int member);
  void Keep(int member) { members_[member].multiplier = proposed_[member]; }
  std::string Save() const;             // exact bytes
  void Load(const std::string& bytes);  // must have the size that Save gives

 private:
  struct Member {
    ScalarAdam multiplier;
    double episodes = 0;  // so far
    double costs[kWindow] = {};
  };
  std::vector<Member> members_;
  std::vector<ScalarAdam> proposed_;
  std::vector<double> limits_, rates_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_COST_MULTIPLIER_H_
// SPDX-License-Identifier: Apache-2.0
