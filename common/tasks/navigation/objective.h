// The rewards (common/tasks/navigation/README.md 5) and the cost (common/tasks/navigation/README.md 6) of the
// navigation task, as pure functions of the state. Thread-safe; nothing blocks or allocates.
#ifndef DATACOM_COMMON_TASKS_NAVIGATION_OBJECTIVE_H_
#define DATACOM_COMMON_TASKS_NAVIGATION_OBJECTIVE_H_

#include "common/tasks/navigation/fetch.h"
#include "common/tasks/navigation/planar.h"

namespace datacom::navigation {

inline constexpr double kGoalDistance = 0.2;  // m, at which TIAGo++ has reached its target

// What distances are measured against, in m: TIAGo++ keeps its radius and a margin off walls and link points, and
// Fetch's radius more off Fetch.
inline constexpr double kTiagoRadius = 0.4, kFetchRadius = 0.3, kMargin = 0.1;

// The published code's reward: distance, heading error away from the target, change of action, a bonus within reach of
// the target; a collision replaces it all.
double CodeReward(const PlanarState& tiago, const Point& target, const Motion& action, const Motion& previous_action,
                  bool collision);

// The paper's formula: a goal heading instead of the target's bearing, the size of the action instead of its change,
// neither bonus nor collision. The formula's heading difference is taken as the size of the shorter angle.
double PaperReward(const PlanarState& tiago, const Point& target, double target_yaw, const Motion& action);

// The margins to the walls, to Fetch and to its link points; their largest. > 0: nearer than the safe distance.
struct CostTerms {
  double wall = 0;
  double base = 0;
  double link[kLinkPoints] = {};
  double Largest() const;
};
CostTerms Costs(const PlanarState& tiago, const PlanarState& fetch, const LinkPoints& points);

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_OBJECTIVE_H_
