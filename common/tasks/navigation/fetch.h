// The Fetch robot of the navigation task, as pure functions: how it drives to its targets
// (common/tasks/navigation/README.md 1.3), how its arm moves and where its links are
// (common/tasks/navigation/README.md 1.4). It ignores TIAGo++. Its position is that of the centre of mass of its base
// link. Thread-safe where const; nothing blocks or allocates.
#ifndef DATACOM_COMMON_TASKS_NAVIGATION_FETCH_H_
#define DATACOM_COMMON_TASKS_NAVIGATION_FETCH_H_

#include <array>

#include "common/tasks/navigation/planar.h"

namespace datacom::navigation {

// The driven arm joints in order: shoulder_pan, shoulder_lift, elbow_flex, wrist_flex (rad). All others stay at 0.
inline constexpr int kArmJoints = 4;
using Arm = std::array<double, kArmJoints>;
inline constexpr Arm kTuckedArm = {1.57, 1.4, 1.74, 1.57};
inline constexpr double kArmGain = 0.1;  // q moves by this share of its distance to the target in a control step

// Is the robot at `target`, so that it draws another one? Within 0.1 m, and any bearing to the right passes: the
// published code compares the signed angle.
bool FetchArrived(const PlanarState& fetch, const Point& target);

// What its motion controller asks of the wheels: forward always, slower towards the target and near walls it
// approaches.
Motion FetchCommand(const PlanarState& fetch, const Point& target);

// What one control step makes of that: the change of `current`. Traction limits forward acceleration to 1.4 m/s^2 and
// yaw acceleration to 4 rad/s^2, times `friction`.
Motion FetchChange(const Motion& current, const Motion& command, double friction);

// Targets of the arm joints: four triangular waves in phase, the pan half as fast as the others, which draws a
// lemniscate in the air.
class ArmPattern {
 public:
  void Restart() { *this = ArmPattern(); }
  // The targets of the next control step. Restarted, they are 0 before the first.
  const Arm& Next();

 private:
  Arm target_ = {0, 0, 0, 0};
  Arm increment_ = {0.005, 0.003, 0.004, 0.005};  // rad a control step
};

// Centres of mass of the links that the cost looks at: shoulder lift, elbow flex, wrist flex, left finger (the hand).
inline constexpr int kLinkPoints = 4;
inline constexpr int kHand = 3;
struct LinkPoint {
  double x = 0, y = 0, z = 0;
};
using LinkPoints = std::array<LinkPoint, kLinkPoints>;
LinkPoints FetchLinkPoints(const PlanarState& fetch, const Arm& arm);

// Where the hand's link points: its heading, and its angle below the horizontal.
struct HandAxes {
  double heading = 0, bend = 0;
};
HandAxes FetchHandAxes(const PlanarState& fetch, const Arm& arm);

// Velocity of the hand in the plane, m/s; arm_rate in rad/s. The reference engine knows it in the link's own axes and
// turns it into the world by the orientation it last computed, that of the step before: `reported_by`.
Point FetchHandVelocity(const PlanarState& fetch, const Arm& arm, const Arm& arm_rate, const HandAxes& reported_by);

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_FETCH_H_
