// The limits of the arm's joints and of the mallet's position, in closed form: the task's cost
// (docs/air_hockey.md 6) and the 17 known constraints (docs/air_hockey.md 9).
#ifndef DATACOM_COMMON_TASKS_AIR_HOCKEY_CONSTRAINTS_H_
#define DATACOM_COMMON_TASKS_AIR_HOCKEY_CONSTRAINTS_H_

#include <string>
#include <vector>

#include "common/safety/known_constraints.h"
#include "common/tasks/hockey_rules.h"

namespace datacom::air_hockey {

// The largest violation (negative: the smallest margin) of 95 % of the joints' position and velocity limits and of the
// mallet's distance to the three near rims. q, velocity: [3]; mallet: [2], robot frame.
double Cost(const double* q, const double* velocity, const double* mallet);

// Rows: 6 positions (upper, lower), mallet x, y lower, y upper, and its height, which a planar arm cannot change (2),
// 6 velocities (upper, lower); groups joint_position, end_effector, joint_velocity. State: 3 joint positions, 3 joint
// velocities. Immutable; thread-safe.
class Constraints : public KnownConstraints {
 public:
  Constraints();
  int count() const override { return 17; }
  const std::vector<double>& viability_gains() const override { return gains_; }
  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<std::string>& groups() const override { return groups_; }
  void Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const override;

 private:
  std::vector<double> gains_;
  std::vector<std::string> names_, groups_;
};

}  // namespace datacom::air_hockey

#endif  // DATACOM_COMMON_TASKS_AIR_HOCKEY_CONSTRAINTS_H_
// SPDX-License-Identifier: Apache-2.0
