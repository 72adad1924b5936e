// Known constraints of the navigation task, in closed form (docs/navigation.md 9): the part of the cost
// that the constraint state determines, which is the distances to the four walls, to Fetch's base and to its hand, and
// two rows that add braking distances. The distances to the other link points are missing, because the arm's joints are
// not observed.
#ifndef DATACOM_COMMON_TASKS_NAVIGATION_CONSTRAINTS_H_
#define DATACOM_COMMON_TASKS_NAVIGATION_CONSTRAINTS_H_

#include <string>
#include <vector>

#include "common/safety/known_constraints.h"

namespace datacom::navigation {

// Rows, in m: the walls at x upper, y upper, x lower, y lower (group wall); Fetch's base and hand (group opponent);
// its base and its arm with the distance that TIAGo++ needs to stop (group approach). The braking distances need
// velocities of the observation and are 0 without one. The state is the same as in Dynamics. No viability gains: the
// action is a velocity and affects every row directly, but drives only along the heading. Immutable; thread-safe.
class Constraints : public KnownConstraints {
 public:
  int count() const override { return 8; }
  const std::vector<double>& viability_gains() const override { return gains_; }
  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<std::string>& groups() const override { return groups_; }
  // At distance 0 the gradient is zero.
  void Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const override;

 private:
  const std::vector<double> gains_ = std::vector<double>(8, 0.0);
  const std::vector<std::string> names_ = {"wall_x_upper",  "wall_y_upper",  "wall_x_lower",  "wall_y_lower",
                                           "opponent_base", "opponent_hand", "approach_base", "approach_arm"};
  const std::vector<std::string> groups_ = {"wall",     "wall",     "wall",     "wall",
                                            "opponent", "opponent", "approach", "approach"};
};

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_CONSTRAINTS_H_
// SPDX-License-Identifier: Apache-2.0
