// The planar arm (docs/air_hockey.md 1.2) without a simulator: its constants, its closed-form
// kinematics and its limits. Pure functions, no allocation. Lengths in m, angles in rad; positions in the robot's
// frame, which is the table's frame shifted by kBaseX.
#ifndef DATACOM_COMMON_TASKS_AIR_HOCKEY_ARM_H_
#define DATACOM_COMMON_TASKS_AIR_HOCKEY_ARM_H_

#include <cmath>

#include "common/safety/known_constraints.h"
#include "common/tasks/hockey_rules.h"

namespace datacom::air_hockey {

inline constexpr int kJoints = 3;
inline constexpr double kLinks[kJoints] = {0.55, 0.44, 0.44};
inline constexpr double kPositionLimits[kJoints] = {2.9670597283903604, 1.8, 2.0943951023931953};  // rad, either side
inline constexpr double kVelocityLimits[kJoints] = {M_PI / 2, M_PI / 2, 2 * M_PI / 3};             // rad/s
inline constexpr double kAccelerationLimits[kJoints] = {2 * M_PI, 2 * M_PI, 8 * M_PI / 3};         // rad/s^2
inline constexpr double kStartPosition[kJoints] = {-1.15570723, 1.30024401, 1.44280414};

// mallet: [2]; jacobian: [2, 3] row-major, or null.
void ForwardKinematics(const double* q, double* mallet, double* jacobian);

// A posture within the joint limits that puts the mallet at (x, y); false if there is none. Of the one-parameter family
// (direction of the last link, both elbows) it takes the one nearest to kStartPosition in joint space, so that
// neighbouring positions get neighbouring postures.
bool InverseKinematics(double x, double y, double* q);

// The commanded acceleration for a desired one: within the limits, and such that the velocity approaches its limit at a
// rate of at most 5/s. Arrays [3]; NaN stays NaN.
void LimitAcceleration(const double* desired, const double* velocity, double* acceleration);

// The limits of the arm's joints and of the mallet's position, in closed form.
//
// The task's cost (docs/air_hockey.md 6): the largest violation (negative: the smallest margin) of 95 %
// of the joints' position and velocity limits and of the mallet's distance to the three near rims. q, velocity: [3];
// mallet: [2], robot frame.
double Cost(const double* q, const double* velocity, const double* mallet);

// The 17 known constraints (docs/air_hockey.md 9): 6 positions (upper, lower), mallet x, y lower, y
// upper, and its height, which a planar arm cannot change (2), 6 velocities (upper, lower); groups joint_position,
// end_effector, joint_velocity. State: 3 joint positions, 3 joint velocities. Immutable; thread-safe.
class Constraints : public KnownConstraints {
 public:
  Constraints();
  void Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const override;
};

}  // namespace datacom::air_hockey

#endif  // DATACOM_COMMON_TASKS_AIR_HOCKEY_ARM_H_
// SPDX-License-Identifier: Apache-2.0
