#include "common/tasks/navigation/constraints.h"

#include <algorithm>
#include <cmath>

#include "common/tasks/navigation/objective.h"

namespace datacom::navigation {
namespace {

constexpr int kWalls = 4, kStates = 3, kUncontrolled = 5;

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
  const int first[2] = {0, 3};  // of x: the base, the hand
  const double least[2] = {kTiagoRadius + kFetchRadius + kMargin, kTiagoRadius + kMargin};
  for (int i = 0; i < 2; ++i) {
    const int row = kWalls + i;
    const double offset[2] = {q[0] - x[first[i]], q[1] - x[first[i] + 1]};
    const double distance = std::hypot(offset[0], offset[1]);
    if (out.k != nullptr) out.k[row] = least[i] - distance;
    for (int axis = 0; axis < 2; ++axis) {
      const double slope = distance > 0 ? offset[axis] / distance : 0;
      if (out.J_q != nullptr) out.J_q[row * kStates + axis] = -slope;
      if (out.J_x != nullptr) out.J_x[row * kUncontrolled + first[i] + axis] = slope;
    }
  }
}

}  // namespace datacom::navigation
// SPDX-License-Identifier: Apache-2.0
