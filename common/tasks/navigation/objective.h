// The rewards (docs/navigation.md 5) and the cost (docs/navigation.md 6) of the
// navigation task, as pure functions of the state. Thread-safe; nothing blocks or allocates.
#ifndef DATACOM_COMMON_TASKS_NAVIGATION_OBJECTIVE_H_
#define DATACOM_COMMON_TASKS_NAVIGATION_OBJECTIVE_H_

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

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_OBJECTIVE_H_
// SPDX-License-Identifier: Apache-2.0
