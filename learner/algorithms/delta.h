// The learned threshold delta of every member (learner/algorithms/README.md 5): delta = softplus(w) with one Adam step
// for each finished episode, or a fixed value. Host memory, float64; not thread-safe.
#ifndef DATACOM_LEARNER_ALGORITHMS_DELTA_H_
#define DATACOM_LEARNER_ALGORITHMS_DELTA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"
#include "learner/algorithms/scalar_adam.h"

namespace datacom::learner {

class Delta {
 public:
  // discount_budget: the budget is converted to discounted cost first (learner/algorithms/README.md 5.2).
  Delta(const AlgorithmConfig& config, bool discount_budget);
  double value(int member) const;
  double raw(int member) const { return members_[member].value; }
  void set_raw(int member, double raw) { members_[member].value = raw; }
  double gradient(int member) const { return gradients_[member]; }  // of the last step
  uint64_t steps(int member) const { return static_cast<uint64_t>(members_[member].steps); }
  // costs: [length + 1] raw, costs[0] counts as 0; cvar: [length + 1]. Returns false, and changes nothing, if the
  // gradient is not finite.
  bool ApplyEpisode(int member, int length, const float* costs, const double* cvar);
  std::string Save() const;             // exact bytes
  void Load(const std::string& bytes);  // must have the size that Save gives

 private:
  double discount_ = 0;
  std::vector<ScalarAdam> members_;                          // the raw value w
  std::vector<double> budgets_, rates_, fixed_, gradients_;  // fixed_: NaN if learned
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_DELTA_H_
// SPDX-License-Identifier: Apache-2.0
