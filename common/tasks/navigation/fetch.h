// The Fetch robot of the navigation task, as pure functions: how it drives to its targets
// (docs/navigation.md 1.3), how its arm moves and where its links are
// (docs/navigation.md 1.4). It ignores TIAGo++. Its position is the centre of mass of its base link.
// Const functions are thread-safe; nothing blocks or allocates.
#ifndef DATACOM_COMMON_TASKS_NAVIGATION_FETCH_H_
#define DATACOM_COMMON_TASKS_NAVIGATION_FETCH_H_

#include <array>

#include "common/tasks/navigation/planar.h"

namespace datacom::navigation {

// The driven arm joints in order: shoulder_pan, shoulder_lift, elbow_flex, wrist_flex (rad). All others stay at 0.
inline constexpr int kArmJoints = 4;
using Arm = std::array<double, kArmJoints>;
inline constexpr Arm kTuckedArm = {1.57, 1.4, 1.74, 1.57};
inline constexpr double kArmGain = 0.1;  // a control step moves q by this share of its distance to the target

// Whether the robot is at `target`, so that it draws another one: within 0.1 m, with a bearing error below 0.1 rad. Any
// bearing to the right passes, because the published code compares the signed angle.
bool FetchArrived(const PlanarState& fetch, const Point& target);

// The command of its motion controller: always forward, slower near the target and near walls that it approaches.
Motion FetchCommand(const PlanarState& fetch, const Point& target);

// The change of `current` within one control step. Traction limits forward acceleration to 1.4 m/s^2 and yaw
// acceleration to 4 rad/s^2, times `friction`.
Motion FetchChange(const Motion& current, const Motion& command, double friction);

// Targets of the arm joints: four triangular waves in phase, the pan at half speed; the hand draws a lemniscate.
class ArmPattern {
 public:
  void Restart() { *this = ArmPattern(); }
  // The targets of the next control step. Restart sets them to 0.
  const Arm& Next();

 private:
  Arm target_ = {0, 0, 0, 0};
  Arm increment_ = {0.005, 0.003, 0.004, 0.005};  // rad per control step
};

// Centres of mass of the links in the cost: shoulder lift, elbow flex, wrist flex, left finger (the hand).
inline constexpr int kLinkPoints = 4;
inline constexpr int kHand = 3;
struct LinkPoint {
  double x = 0, y = 0, z = 0;
};
using LinkPoints = std::array<LinkPoint, kLinkPoints>;
LinkPoints FetchLinkPoints(const PlanarState& fetch, const Arm& arm);

// Direction of the hand's link: its heading, and its angle below the horizontal.
struct HandAxes {
  double heading = 0, bend = 0;
};
HandAxes FetchHandAxes(const PlanarState& fetch, const Arm& arm);

// Velocity of the hand in the plane, m/s; arm_rate in rad/s. The reference engine computes it in the link's axes and
// turns it into the world's by the orientation of the step before: `reported_by`.
Point FetchHandVelocity(const PlanarState& fetch, const Arm& arm, const Arm& arm_rate, const HandAxes& reported_by);

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_FETCH_H_
// SPDX-License-Identifier: Apache-2.0
