// The threshold delta of every member (docs/algorithms.md 5): delta = softplus(w) with one Adam step for each
// finished episode, a controller (delta_control.h), or a fixed value. Host memory, float64; not thread-safe.
#ifndef DATACOM_LEARNER_ALGORITHMS_DELTA_H_
#define DATACOM_LEARNER_ALGORITHMS_DELTA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "learner/algorithms/algorithm.h"
#include "learner/algorithms/delta_control.h"
#include "learner/algorithms/scalar_adam.h"

namespace datacom::learner {

bool AnyControlled(const std::vector<MemberConfig>& members);  // whether a member has delta_mode "controlled"

class Delta {
 public:
  explicit Delta(const AlgorithmConfig& config);
  double value(int member) const;
  double raw(int member) const;  // w, or the controller's integral, kappa
  void set_raw(int member, double raw);
  double gradient(int member) const { return members_[member].gradient; }  // of the last step: dloss/dw, or e'
  uint64_t steps(int member) const { return static_cast<uint64_t>(members_[member].raw.steps); }
  // Null unless the member's delta is controlled.
  const DeltaControl* control(int member) const {
    return members_[member].control ? &*members_[member].control : nullptr;
  }
  // costs: [length + 1] raw, costs[0] counts as 0; cvar: [length + 1]. Returns false, and changes nothing, if the
  // gradient, or what a controller sees, is not finite.
  bool ApplyEpisode(int member, int length, const float* costs, const double* cvar);
  // Exact bytes, equally many for each member: its ScalarAdam, and, if a member of the population is controlled, the
  // state of its controller.
  std::string Save() const;
  void Load(const std::string& bytes);  // must have the size that Save gives

 private:
  struct Member {
    ScalarAdam raw;     // its value is w; a controller uses only its steps
    double budget = 0;  // discounted
    double rate = 0, gradient = 0;
    std::optional<double> fixed;
    std::optional<DeltaControl> control;
  };

  double discount_ = 0;
  bool saves_controls_ = false;
  std::vector<Member> members_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_DELTA_H_
// SPDX-License-Identifier: Apache-2.0
