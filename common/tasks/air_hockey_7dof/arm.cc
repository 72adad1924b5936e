#include "common/tasks/air_hockey_7dof/arm.h"

#include <algorithm>

namespace datacom::air_hockey_7dof {
namespace {

// With all joints at 0 the arm stands upright and every frame has the robot's axes. Joints turn about z, y or -y.
constexpr double kOffsets[kJoints] = {0.1575, 0.2025, 0.2045, 0.2155, 0.1845, 0.2155, 0.081};  // along z, to each joint
constexpr double kTool = 0.045 + 0.45;  // from joint 7: to the flange, and the rod
constexpr double kSigns[kJoints] = {1, 1, 1, -1, 1, 1, 1};
constexpr int kElbow = 3, kWrist = 5;  // joints 4 and 6

void Cross(const double* a, const double* b, double* out) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

// Columns of the joints before `joints`; the others do not move the point.
void Jacobian(const double (*axes)[3], const double (*places)[3], int joints, const double* point, double* out) {
  std::fill_n(out, 3 * kJoints, 0.0);
  for (int j = 0; j < joints; ++j) {
    const double arm[3] = {point[0] - places[j][0], point[1] - places[j][1], point[2] - places[j][2]};
    double column[3];
    Cross(axes[j], arm, column);
    for (int i = 0; i < 3; ++i) out[i * kJoints + j] = column[i];
  }
}

}  // namespace

Pose ForwardKinematics(const double* q) {
  double x[3] = {1, 0, 0}, y[3] = {0, 1, 0}, z[3] = {0, 0, 1}, at[3] = {0, 0, 0};  // the frame's axes and origin
  double axes[kJoints][3], places[kJoints][3];
  for (int j = 0; j < kJoints; ++j) {
    const bool about_z = j % 2 == 0;
    for (int i = 0; i < 3; ++i) {
      at[i] += kOffsets[j] * z[i];
      places[j][i] = at[i];
      axes[j][i] = kSigns[j] * (about_z ? z[i] : y[i]);
    }
    const double c = std::cos(q[j]), s = kSigns[j] * std::sin(q[j]);
    for (int i = 0; i < 3; ++i) {
      double& other = about_z ? y[i] : z[i];
      const double old_x = x[i], old = other, sign = about_z ? 1 : -1;
      x[i] = c * old_x + sign * s * old;
      other = c * old - sign * s * old_x;
    }
  }
  Pose pose;
  for (int i = 0; i < 3; ++i) {
    pose.elbow[i] = places[kElbow][i];
    pose.wrist[i] = places[kWrist][i];
    pose.mallet[i] = at[i] + kTool * z[i];
  }
  Jacobian(axes, places, kElbow, pose.elbow, pose.elbow_jacobian);
  Jacobian(axes, places, kWrist, pose.wrist, pose.wrist_jacobian);
  Jacobian(axes, places, kJoints, pose.mallet, pose.mallet_jacobian);
  return pose;
}

}  // namespace datacom::air_hockey_7dof
// SPDX-License-Identifier: Apache-2.0
