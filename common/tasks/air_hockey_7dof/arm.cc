#include "common/tasks/air_hockey_7dof/arm.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/tasks/hockey_rules.h"

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

namespace {

using air_hockey::kLargestMalletY;
using air_hockey::kLimitShare;
using air_hockey::kLowestMalletX;

constexpr double kHeightTolerance = 0.02;  // m, of the cost
constexpr double kLowestLink = 0.3;        // m, of elbow and wrist: 0.2 m above the table

constexpr int kStates = 2 * kJoints;
constexpr int kMalletRow = 2 * kJoints;     // first of 3
constexpr int kLinkRow = kMalletRow + 3;    // elbow, wrist
constexpr int kVelocityRow = kLinkRow + 3;  // after the height; first of 14
static_assert(Constraints::kHeight == kLinkRow + 2 && Constraints::kCount == kVelocityRow + 2 * kJoints);

void Values(const Pose& pose, const double* q, const double* velocity, double* k) {
  for (int i = 0; i < kJoints; ++i) {
    k[i] = q[i] - kLimitShare * kPositionLimits[i];
    k[kJoints + i] = -q[i] - kLimitShare * kPositionLimits[i];
    k[kVelocityRow + i] = velocity[i] - kLimitShare * kVelocityLimits[i];
    k[kVelocityRow + kJoints + i] = -velocity[i] - kLimitShare * kVelocityLimits[i];
  }
  k[kMalletRow] = kLowestMalletX - pose.mallet[0];
  k[kMalletRow + 1] = -kLargestMalletY - pose.mallet[1];
  k[kMalletRow + 2] = pose.mallet[1] - kLargestMalletY;
  k[kLinkRow] = kLowestLink - pose.elbow[2];
  k[kLinkRow + 1] = kLowestLink - pose.wrist[2];
  k[Constraints::kHeight] = pose.mallet[2] - kPlane;
}

}  // namespace

double Cost(const double* q, const double* velocity) {
  double k[Constraints::kCount];
  Values(ForwardKinematics(q), q, velocity, k);
  double& height = k[Constraints::kHeight];
  height = std::abs(height) - kHeightTolerance;
  return *std::max_element(k, k + Constraints::kCount);
}

Constraints::Constraints() {
  for (const char* side : {"upper", "lower"}) {
    for (int i = 1; i <= kJoints; ++i) Add("joint_position", absl::StrCat("joint_", i, "_", side), 1.0);
  }
  for (const char* name : {"mallet_x_lower", "mallet_y_lower", "mallet_y_upper"}) Add("end_effector", name, 0.5);
  for (const char* name : {"elbow_z_lower", "wrist_z_lower"}) Add("link_height", name, 0.5);
  Add("mallet_height", "mallet_z", 0.02, /*equality=*/true);
  for (const char* side : {"upper", "lower"}) {
    for (int i = 1; i <= kJoints; ++i) Add("joint_velocity", absl::StrCat("velocity_", i, "_", side), 0.0);
  }
}

void Constraints::Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const {
  const Pose pose = ForwardKinematics(at.q);
  if (out.k != nullptr) Values(pose, at.q, at.q + kJoints, out.k);
  if (out.J_q == nullptr) return;
  std::fill(out.J_q, out.J_q + kCount * kStates, 0.0);
  const double *const x = pose.mallet_jacobian, *const y = x + kJoints, *const z = y + kJoints;
  for (int i = 0; i < kJoints; ++i) {
    const auto J = [&](int row) -> double& { return out.J_q[row * kStates + i]; };
    J(i) = 1;
    J(kJoints + i) = -1;
    J(kMalletRow) = -x[i];
    J(kMalletRow + 1) = -y[i];
    J(kMalletRow + 2) = y[i];
    J(kLinkRow) = -pose.elbow_jacobian[2 * kJoints + i];
    J(kLinkRow + 1) = -pose.wrist_jacobian[2 * kJoints + i];
    J(kHeight) = z[i];
    out.J_q[(kVelocityRow + i) * kStates + kJoints + i] = 1;
    out.J_q[(kVelocityRow + kJoints + i) * kStates + kJoints + i] = -1;
  }
}

}  // namespace datacom::air_hockey_7dof
// SPDX-License-Identifier: Apache-2.0
