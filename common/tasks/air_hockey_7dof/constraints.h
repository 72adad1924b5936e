// The limits of the arm in closed form: the task's cost (docs/air_hockey.md 14.5) and its known
// constraints (docs/air_hockey.md 14.7), of which the height of the mallet is an equation.
#ifndef DATACOM_COMMON_TASKS_AIR_HOCKEY_7DOF_CONSTRAINTS_H_
#define DATACOM_COMMON_TASKS_AIR_HOCKEY_7DOF_CONSTRAINTS_H_

#include <string>
#include <vector>

#include "common/safety/known_constraints.h"

namespace datacom::air_hockey_7dof {

// The largest violation of all rows, and of the mallet's height beyond its tolerance. q, velocity: [7].
double Cost(const double* q, const double* velocity);

// Immutable; thread-safe. State: 7 joint positions, 7 joint velocities.
class Constraints : public KnownConstraints {
 public:
  static constexpr int kHeight = 19;  // row of the mallet's height
  static constexpr int kCount = 34;

  Constraints();
  int count() const override { return kCount; }
  bool equality(int row) const override { return row == kHeight; }
  const std::vector<double>& viability_gains() const override { return gains_; }
  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<std::string>& groups() const override { return groups_; }
  void Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const override;

 private:
  std::vector<double> gains_;
  std::vector<std::string> names_, groups_;
};

}  // namespace datacom::air_hockey_7dof

#endif  // DATACOM_COMMON_TASKS_AIR_HOCKEY_7DOF_CONSTRAINTS_H_
// SPDX-License-Identifier: Apache-2.0
