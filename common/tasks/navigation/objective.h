// The rewards (docs/navigation.md 5) and the cost (docs/navigation.md 6) of the
// navigation task, as pure functions of the state. Thread-safe; nothing blocks or allocates.
#ifndef DATACOM_COMMON_TASKS_NAVIGATION_OBJECTIVE_H_
#define DATACOM_COMMON_TASKS_NAVIGATION_OBJECTIVE_H_

#include "common/safety/known_constraints.h"
#include "common/tasks/navigation/fetch.h"
#include "common/tasks/navigation/planar.h"

namespace datacom::navigation {

inline constexpr double kGoalDistance = 0.2;  // m, at which TIAGo++ has reached its target

// Safe distances, in m: from walls and link points TIAGo++ keeps its radius and the margin, from Fetch also Fetch's
// radius.
inline constexpr double kTiagoRadius = 0.4, kFetchRadius = 0.3, kMargin = 0.1;

// The published code's reward: distance, heading error while away from the target, change of action, a bonus at the
// target; a collision replaces all of it.
double CodeReward(const PlanarState& tiago, const Point& target, const Motion& action, const Motion& previous_action,
                  bool collision);

// The paper's formula: a goal heading instead of the target's bearing, the action's norm instead of its change's, no
// bonus and no collision term. The heading difference is the absolute shorter angle.
double PaperReward(const PlanarState& tiago, const Point& target, double target_yaw, const Motion& action);

// Safe distance minus distance, in m: to the walls, to Fetch and to its link points. > 0: a violation.
struct CostTerms {
  double wall = 0;
  double base = 0;
  double link[kLinkPoints] = {};
  double Largest() const;
};
CostTerms Costs(const PlanarState& tiago, const PlanarState& fetch, const LinkPoints& points);

// Known constraints of the navigation task, in closed form (docs/navigation.md 9): the part of the cost
// that the constraint state determines, which is the distances to the four walls, to Fetch's base and to its hand, and
// two rows that add braking distances. The distances to the other link points are missing, because the arm's joints are
// not observed.

// Rows, in m: the walls at x upper, y upper, x lower, y lower (group wall); Fetch's base and hand (group opponent);
// its base and its arm with the distance that TIAGo++ needs to stop (group approach). The braking distances need
// velocities of the observation and are 0 without one. The state is the same as in Dynamics. No viability gains: the
// action is a velocity and affects every row directly, but drives only along the heading. Immutable; thread-safe.
class Constraints : public KnownConstraints {
 public:
  Constraints();
  // At distance 0 the gradient is zero.
  void Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const override;
};

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_OBJECTIVE_H_
// SPDX-License-Identifier: Apache-2.0
