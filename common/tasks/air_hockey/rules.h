// How an air hockey episode ends (common/tasks/air_hockey/README.md 7) and the rewards of its end and of approaching
// the goal (common/tasks/air_hockey/README.md 5), as pure functions of the puck. Positions in the robot's frame.
#ifndef DATACOM_COMMON_TASKS_AIR_HOCKEY_RULES_H_
#define DATACOM_COMMON_TASKS_AIR_HOCKEY_RULES_H_

namespace datacom::air_hockey {

enum class Ending { kNone, kGoal, kUp, kRight, kLeft, kBottom };

struct PuckState {
  double x = 0, y = 0;    // m
  double vx = 0, vy = 0;  // m/s
};

Ending EndingOf(const PuckState& puck);

// Distance to the middle of the opponent's goal; 50 times its decrease is the reward of a step that does not end the
// episode.
double GoalDistance(const PuckState& puck);
inline constexpr double kApproachReward = 50.0;
// Reward of the step that ends the episode; ending is not kNone.
double EndingReward(Ending ending, const PuckState& puck);

}  // namespace datacom::air_hockey

#endif  // DATACOM_COMMON_TASKS_AIR_HOCKEY_RULES_H_
// SPDX-License-Identifier: Apache-2.0
