#include "common/tasks/navigation/objective.h"
#include "common/base/norm.h"

#include <algorithm>
#include <cmath>

namespace datacom::navigation {
namespace {

constexpr double kActionWeight = 0.1;
constexpr double kGoalBonus = 10;
constexpr double kCollisionReward = -1000;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

double CodeReward(const PlanarState& tiago, const Point& target, const Motion& action, const Motion& previous_action,
                  bool collision) {
  if (collision) return kCollisionReward;
  const double distance = Distance(tiago, target);
  const double heading = std::abs(BearingError(tiago, target));
  const double change = Norm(action.v - previous_action.v, action.omega - previous_action.omega);
  const double reward = -distance - heading * Sigmoid(20 * (distance - 0.3)) / M_PI - kActionWeight * change;
  return distance < kGoalDistance ? reward + kGoalBonus : reward;
}

double PaperReward(const PlanarState& tiago, const Point& target, double target_yaw, const Motion& action) {
  const double distance = Distance(tiago, target);
  const double heading = std::abs(WrapAngle(target_yaw - tiago.yaw));
  return -distance - heading * Sigmoid(30 * (distance - kGoalDistance)) / M_PI -
         kActionWeight * Norm(action.v, action.omega);
}

double CostTerms::Largest() const { return std::max({wall, base, link[0], link[1], link[2], link[3]}); }

CostTerms Costs(const PlanarState& tiago, const PlanarState& fetch, const LinkPoints& points) {
  CostTerms terms;
  terms.wall = std::max(std::abs(tiago.x) - kRoomX, std::abs(tiago.y) - kRoomY) + kTiagoRadius + kMargin;
  terms.base = kTiagoRadius + kFetchRadius + kMargin - Distance(tiago, {fetch.x, fetch.y});
  for (int i = 0; i < kLinkPoints; ++i) {
    terms.link[i] = kTiagoRadius + kMargin - Distance(tiago, {points[i].x, points[i].y});
  }
  return terms;
}

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

Constraints::Constraints() {
  for (const char* name : {"wall_x_upper", "wall_y_upper", "wall_x_lower", "wall_y_lower"}) Add("wall", name, 0);
  for (const char* name : {"opponent_base", "opponent_hand"}) Add("opponent", name, 0);
  for (const char* name : {"approach_base", "approach_arm"}) Add("approach", name, 0);
}

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
    const double distance = Norm(offset[0], offset[1]);
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
