#include "common/tasks/air_hockey_7dof/constraints.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/tasks/air_hockey_7dof/arm.h"
#include "common/tasks/hockey_rules.h"

namespace datacom::air_hockey_7dof {
namespace {

using air_hockey::kBaseX;
using air_hockey::kHalfLength;
using air_hockey::kHalfWidth;
using air_hockey::kMalletRadius;

constexpr double kLimitShare = 0.95;  // of the joints' limits
constexpr double kLowestX = kBaseX - (kHalfLength - kMalletRadius);
constexpr double kLargestY = kHalfWidth - kMalletRadius;
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
  k[kMalletRow] = kLowestX - pose.mallet[0];
  k[kMalletRow + 1] = -kLargestY - pose.mallet[1];
  k[kMalletRow + 2] = pose.mallet[1] - kLargestY;
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
  const auto add = [this](const char* group, std::string name, double gain) {
    groups_.emplace_back(group);
    names_.push_back(std::move(name));
    gains_.push_back(gain);
  };
  for (const char* side : {"upper", "lower"}) {
    for (int i = 1; i <= kJoints; ++i) add("joint_position", absl::StrCat("joint_", i, "_", side), 1.0);
  }
  for (const char* name : {"mallet_x_lower", "mallet_y_lower", "mallet_y_upper"}) add("end_effector", name, 0.5);
  for (const char* name : {"elbow_z_lower", "wrist_z_lower"}) add("link_height", name, 0.5);
  add("mallet_height", "mallet_z", 0.02);
  for (const char* side : {"upper", "lower"}) {
    for (int i = 1; i <= kJoints; ++i) add("joint_velocity", absl::StrCat("velocity_", i, "_", side), 0.0);
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
