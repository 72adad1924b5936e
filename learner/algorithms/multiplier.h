// The multiplier of the cost in the actor's loss of every member (docs/algorithms.md 6.1): a proportional and integral
// controller that brings the undiscounted cost of an episode to its budget. 0 for members whose multiplier_mode is
// "none". Host memory, float64; not thread-safe.
#ifndef DATACOM_LEARNER_ALGORITHMS_MULTIPLIER_H_
#define DATACOM_LEARNER_ALGORITHMS_MULTIPLIER_H_

#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

class Multiplier {
 public:
  explicit Multiplier(const AlgorithmConfig& config);
  // Whether a member of the population has a multiplier.
  static bool IsUsed(const AlgorithmConfig& config);
  bool has(int member) const { return settings_[member].limit > 0; }
  double value(int member) const;
  // A finished episode of `length` rows with the undiscounted cost `total`, which is finite.
  void ApplyEpisode(int member, int length, double total);
  // Exact bytes, equally many for each member.
  std::string Save() const;
  void Load(const std::string& bytes);  // must have the size that Save gives

 private:
  friend class ArrayAccess;  // of tests
  struct Settings {
    double budget = 0, scale = 1;  // undiscounted, of an episode
    double proportional = 0, integral = 0, limit = 0;
  };
  // All that changes; plain data, without padding.
  struct State {
    double weight = 0, cost = 0;  // n and J of docs/algorithms.md 5.6
    double episodes = 0;          // sum of w
    double integral = 0;
  };

  int horizon_ = 1;
  std::vector<Settings> settings_;
  std::vector<State> states_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_MULTIPLIER_H_
// SPDX-License-Identifier: Apache-2.0
