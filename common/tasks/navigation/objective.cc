#include "common/tasks/navigation/objective.h"

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
  const double change = std::hypot(action.v - previous_action.v, action.omega - previous_action.omega);
  const double reward = -distance - heading * Sigmoid(20 * (distance - 0.3)) / M_PI - kActionWeight * change;
  return distance < kGoalDistance ? reward + kGoalBonus : reward;
}

double PaperReward(const PlanarState& tiago, const Point& target, double target_yaw, const Motion& action) {
  const double distance = Distance(tiago, target);
  const double heading = std::abs(WrapAngle(target_yaw - tiago.yaw));
  return -distance - heading * Sigmoid(30 * (distance - kGoalDistance)) / M_PI -
         kActionWeight * std::hypot(action.v, action.omega);
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

}  // namespace datacom::navigation
// SPDX-License-Identifier: Apache-2.0
