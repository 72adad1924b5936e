#include "common/tasks/air_hockey/constraints.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/tasks/air_hockey/arm.h"

namespace datacom::air_hockey {
namespace {

constexpr double kLimitShare = 0.95;  // of the joints' limits
constexpr double kLowestX = kBaseX - (kHalfLength - kMalletRadius);
constexpr double kLargestY = kHalfWidth - kMalletRadius;
constexpr double kHeight = 0.1, kHeightTolerance = 0.02;  // m, of the mallet in the robot's frame; constant

constexpr int kStates = 2 * kJoints;
constexpr int kMalletRow = 2 * kJoints;       // first of 5
constexpr int kVelocityRow = kMalletRow + 5;  // first of 6

}  // namespace

double Cost(const double* q, const double* velocity, const double* mallet) {
  double cost = std::max({kLowestX - mallet[0], -kLargestY - mallet[1], mallet[1] - kLargestY});
  for (int i = 0; i < kJoints; ++i) {
    const double position = kLimitShare * kPositionLimits[i], speed = kLimitShare * kVelocityLimits[i];
    cost = std::max({cost, q[i] - position, -q[i] - position, velocity[i] - speed, -velocity[i] - speed});
  }
  return cost;
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
  for (const char* name : {"mallet_x_lower", "mallet_y_lower", "mallet_y_upper", "mallet_z_lower", "mallet_z_upper"}) {
    add("end_effector", name, 0.5);
  }
  for (const char* side : {"upper", "lower"}) {
    for (int i = 1; i <= kJoints; ++i) add("joint_velocity", absl::StrCat("velocity_", i, "_", side), 0.0);
  }
}

void Constraints::Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const {
  const double* const q = at.q;
  double mallet[2], jacobian[2 * kJoints];
  ForwardKinematics(q, mallet, jacobian);
  if (out.k != nullptr) {
    for (int i = 0; i < kJoints; ++i) {
      const double velocity = q[kJoints + i];
      out.k[i] = q[i] - kLimitShare * kPositionLimits[i];
      out.k[kJoints + i] = -q[i] - kLimitShare * kPositionLimits[i];
      out.k[kVelocityRow + i] = velocity - kLimitShare * kVelocityLimits[i];
      out.k[kVelocityRow + kJoints + i] = -velocity - kLimitShare * kVelocityLimits[i];
    }
    out.k[kMalletRow] = kLowestX - mallet[0];
    out.k[kMalletRow + 1] = -kLargestY - mallet[1];
    out.k[kMalletRow + 2] = mallet[1] - kLargestY;
    out.k[kMalletRow + 3] = (kHeight - kHeightTolerance) - kHeight;
    out.k[kMalletRow + 4] = kHeight - (kHeight + kHeightTolerance);
  }
  if (out.J_q == nullptr) return;
  std::fill(out.J_q, out.J_q + count() * kStates, 0.0);
  for (int i = 0; i < kJoints; ++i) {
    out.J_q[i * kStates + i] = 1;
    out.J_q[(kJoints + i) * kStates + i] = -1;
    out.J_q[kMalletRow * kStates + i] = -jacobian[i];
    out.J_q[(kMalletRow + 1) * kStates + i] = -jacobian[kJoints + i];
    out.J_q[(kMalletRow + 2) * kStates + i] = jacobian[kJoints + i];
    out.J_q[(kVelocityRow + i) * kStates + kJoints + i] = 1;
    out.J_q[(kVelocityRow + kJoints + i) * kStates + kJoints + i] = -1;
  }
}

}  // namespace datacom::air_hockey
// SPDX-License-Identifier: Apache-2.0
