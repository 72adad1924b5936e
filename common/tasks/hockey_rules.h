// What the tasks of air hockey share (docs/air_hockey.md): the table's sizes, where the puck starts (2
// there), the puck's part of an observation (4), how an episode ends (7) and the rewards (5). Positions in the robot's
// frame, unless the table frame is named. The table's model is hockey_table.xml. Nothing blocks.
#ifndef DATACOM_COMMON_TASKS_HOCKEY_RULES_H_
#define DATACOM_COMMON_TASKS_HOCKEY_RULES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "common/tasks/task.h"

namespace datacom::air_hockey {

inline constexpr double kBaseX = 1.51;            // robot x = table x + kBaseX
inline constexpr double kHalfLength = 0.974;      // m, of the play field
inline constexpr double kHalfWidth = 0.519;       // m
inline constexpr double kMalletRadius = 0.04815;  // m
inline constexpr double kPuckRadius = 0.03165;    // m

// The bounds of both arms' constraints: of the mallet, and of the joints' positions and velocities.
inline constexpr double kLowestMalletX = kBaseX - (kHalfLength - kMalletRadius);
inline constexpr double kLargestMalletY = kHalfWidth - kMalletRadius;
inline constexpr double kLimitShare = 0.95;  // of the joints' limits

// The puck starts here, uniform in x and |y| (table frame, m); its yaw is uniform over the circle.
inline constexpr double kPuckLowX = -0.7, kPuckHighX = -0.3;
inline constexpr double kOriginalPuckY = 0.4;
// The paper's adjusted region excludes starts near the edge but gives no number. Ours: the mallet fits between the puck
// and the side rim (0.519 - 0.032 - 2 x 0.048 = 0.391) with 7 cm to spare for the swing.
inline constexpr double kAdjustedPuckY = 0.32;

// Table frame.
struct PuckPlace {
  double x = 0, y = 0, yaw = 0;
};
// A drawn place with |y| <= largest_y, or the start values that `init` names. INVALID_ARGUMENT as CheckStartValues.
absl::StatusOr<PuckPlace> DrawPuck(const TaskSpec& spec, double largest_y, const std::map<std::string, double>& init,
                                   RandomStream* stream);
// Writes the place into the positions of the puck's joints x, y and yaw.
void PlacePuck(const PuckPlace& puck, double* position);

// Where the puck's entries of an observation begin, and those of the joints: positions, then velocities.
inline constexpr int kPuckPosition = 0;  // x, y, yaw in [-pi, pi)
inline constexpr int kPuckVelocity = 3;  // of x, y, yaw
inline constexpr int kJointPosition = 6;
// Writes the puck's, from the positions and velocities of its joints.
void ObservePuck(const double* position, const double* velocity, double* observation);

// The facts and the control-affine model of a task. q = [joint positions, joint velocities]; no uncontrollable state.
// f = [velocities; 0], G = [0; gains], with one gain for each joint. `mallet`: the last entries of an observation.
TaskModel HockeyModel(const std::vector<double>& gains, const std::vector<std::string>& mallet,
                      const v1::TaskOptions& options);

enum class Ending { kNone, kGoal, kUp, kRight, kLeft, kBottom };

struct PuckState {
  double x = 0, y = 0;    // m
  double vx = 0, vy = 0;  // m/s
};
PuckState PuckOf(const double* observation);

Ending EndingOf(const PuckState& puck);

// Distance to the middle of the opponent's goal; 50 times its decrease is the reward of a step that does not end the
// episode.
double GoalDistance(const PuckState& puck);
inline constexpr double kApproachReward = 50.0;
// Reward of the step that ends the episode; ending is not kNone.
double EndingReward(Ending ending, const PuckState& puck);

// Rewards and ending of one episode. Not thread-safe; allocates nothing.
class Rally {
 public:
  void Start() { *this = Rally(); }
  // After a step: sets reward and absorbing.
  void Score(const PuckState& puck, StepResult* result);
  Ending ending() const { return ending_; }  // the first of this episode

 private:
  double goal_distance_ = -1;  // after the previous step; negative before the first
  Ending ending_ = Ending::kNone;
};

}  // namespace datacom::air_hockey

#endif  // DATACOM_COMMON_TASKS_HOCKEY_RULES_H_
// SPDX-License-Identifier: Apache-2.0
