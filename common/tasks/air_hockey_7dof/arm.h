// The arm with seven joints (docs/air_hockey.md 14.1) without a simulator: its constants and its
// closed-form kinematics. Pure functions, no allocation. Lengths in m, angles in rad; positions in the robot's frame.
#ifndef DATACOM_COMMON_TASKS_AIR_HOCKEY_7DOF_ARM_H_
#define DATACOM_COMMON_TASKS_AIR_HOCKEY_7DOF_ARM_H_

#include <cmath>

#include "common/safety/known_constraints.h"

namespace datacom::air_hockey_7dof {

inline constexpr int kJoints = 7;
inline constexpr double kDegree = M_PI / 180;
inline constexpr double kPositionLimits[kJoints] = {170 * kDegree, 120 * kDegree, 170 * kDegree, 120 * kDegree,
                                                    170 * kDegree, 120 * kDegree, 175 * kDegree};  // either side
inline constexpr double kVelocityLimits[kJoints] = {85 * kDegree,  85 * kDegree,  100 * kDegree, 75 * kDegree,
                                                    130 * kDegree, 135 * kDegree, 135 * kDegree};  // rad/s
inline constexpr double kAccelerationShare = 4;  // 1/s: acceleration limits are this times the velocity limits
// The tool points down, with the mallet at (0.65, 0) on the table's plane.
inline constexpr double kStartPosition[kJoints] = {0, 0.638040997462095,  0, -0.9611864911712035,
                                                   0, 1.5423651649564947, 0};
// Of the mallet's centre: 0.01 m above the table, whose surface is 0.1 m above the robot's base.
inline constexpr double kPlane = 0.11;

struct Pose {
  double mallet[3], elbow[3], wrist[3];
  double mallet_jacobian[3 * kJoints], elbow_jacobian[3 * kJoints], wrist_jacobian[3 * kJoints];  // [3, 7] row-major
};

Pose ForwardKinematics(const double* q);

// The limits of the arm in closed form: the task's cost (docs/air_hockey.md 14.5) and its known
// constraints (docs/air_hockey.md 14.7), of which the height of the mallet is an equation.

// The largest violation of all rows, and of the mallet's height beyond its tolerance. q, velocity: [7].
double Cost(const double* q, const double* velocity);

// Immutable; thread-safe. State: 7 joint positions, 7 joint velocities.
class Constraints : public KnownConstraints {
 public:
  static constexpr int kHeight = 19;  // row of the mallet's height
  static constexpr int kCount = 34;

  Constraints();
  void Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const override;
};

}  // namespace datacom::air_hockey_7dof

#endif  // DATACOM_COMMON_TASKS_AIR_HOCKEY_7DOF_ARM_H_
// SPDX-License-Identifier: Apache-2.0
