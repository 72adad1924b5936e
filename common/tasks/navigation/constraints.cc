#include "common/tasks/navigation/constraints.h"

#include <algorithm>
#include <cmath>

#include "common/tasks/navigation/objective.h"

namespace datacom::navigation {
namespace {

constexpr int kWalls = 4, kStates = 3, kUncontrolled = 5;
constexpr double kBrake = 1.21;  // m/s^2, with which TIAGo++'s wheels can stop it (wheel_drive.h)

// Where the line from Fetch's base (0) to its hand (1) is nearest to `from`.
double ShareAlongArm(const double* from, const double* x) {
  const double arm[2] = {x[3] - x[0], x[4] - x[1]};
  const double length = arm[0] * arm[0] + arm[1] * arm[1];
  if (length <= 0) return 0;
  return std::clamp(((from[0] - x[0]) * arm[0] + (from[1] - x[1]) * arm[1]) / length, 0.0, 1.0);
}

}  // namespace

void Constraints::Evaluate(const KnownConstraintsState& at, const KnownConstraintsOut& out) const {
  const double *const q = at.q, *const x = at.x;
  const double room[2] = {kRoomX, kRoomY};
  if (out.J_q != nullptr) std::fill_n(out.J_q, count() * kStates, 0.0);
  if (out.J_x != nullptr) std::fill_n(out.J_x, count() * kUncontrolled, 0.0);
  for (int wall = 0; wall < kWalls; ++wall) {
    const int axis = wall % 2, sign = wall < 2 ? 1 : -1;
    if (out.k != nullptr) out.k[wall] = sign * q[axis] - room[axis] + kTiagoRadius + kMargin;
    if (out.J_q != nullptr) out.J_q[wall * kStates + axis] = sign;
  }
  const double base = kTiagoRadius + kFetchRadius + kMargin, link = kTiagoRadius + kMargin;
  // How far along the arm the point of each row is, and the distance that it keeps.
  const double share[4] = {0, 1, 0, ShareAlongArm(q, x)}, least[4] = {base, link, base, link};
  for (int i = 0; i < 4; ++i) {
    const int row = kWalls + i;
    const double weight[2] = {1 - share[i], share[i]};
    double offset[2], closing = 0;
    for (int axis = 0; axis < 2; ++axis) offset[axis] = q[axis] - weight[0] * x[axis] - weight[1] * x[3 + axis];
    const double distance = std::hypot(offset[0], offset[1]);
    const double* const seen = at.observation;
    for (int axis = 0; axis < 2; ++axis) {
      const double slope = distance > 0 ? offset[axis] / distance : 0;
      if (i >= 2 && seen != nullptr) {
        closing -= slope * (seen[6 + axis] - weight[0] * seen[13 + axis] - weight[1] * seen[20 + axis]);
      }
      if (out.J_q != nullptr) out.J_q[row * kStates + axis] = -slope;
      if (out.J_x != nullptr) {
        out.J_x[row * kUncontrolled + axis] = slope * weight[0];
        out.J_x[row * kUncontrolled + 3 + axis] = slope * weight[1];
      }
    }
    const double speed = std::max(closing, 0.0);
    if (out.k != nullptr) out.k[row] = least[i] - distance + speed * speed / (2 * kBrake);
  }
}

}  // namespace datacom::navigation
// SPDX-License-Identifier: Apache-2.0
