#include "common/base/norm.h"
#include "common/tasks/navigation/dynamics.h"

#include <algorithm>
#include <cmath>

#include "common/tasks/navigation/objective.h"

namespace datacom::navigation {
namespace {

constexpr double kTopSpeed = 1.0, kTopTurn = M_PI / 3;  // m/s, rad/s: the action's bounds
constexpr double kTurnGain = 3.0;                       // 1/s
constexpr double kFarGap = 1.0, kNearGap = 0.7;         // m to Fetch: begins to give way; does nothing else
constexpr double kWallGap = 0.55;                       // m, where TIAGo++ stops before a wall

double Gap(const Point& seen) { return Norm(seen.x, seen.y); }
double TurnTo(double bearing) { return ClampTo(kTurnGain * bearing, kTopTurn); }

// Returns the point nearest to TIAGo++ on the line from the middle of Fetch's base to its hand, in TIAGo++'s axes.
Point NearestOfFetch(const Sight& sight) {
  const Point base = SeenFrom(sight.tiago, {sight.fetch.x, sight.fetch.y});
  const Point hand = SeenFrom(sight.tiago, sight.hand);
  const Point arm = {hand.x - base.x, hand.y - base.y};
  const double length = arm.x * arm.x + arm.y * arm.y;
  const double share = length > 0 ? std::clamp(-(base.x * arm.x + base.y * arm.y) / length, 0.0, 1.0) : 0.0;
  return {base.x + share * arm.x, base.y + share * arm.y};
}

// Distance in m that TIAGo++ can drive before it must stop for a wall; `sign`: ahead (1) or backwards (-1).
double RoomToDrive(const PlanarState& tiago, double sign) {
  const auto along = [](double position, double direction, double wall) {
    const double speed = std::abs(direction);
    return speed > 1e-3 ? (wall - kWallGap - std::copysign(position, position * direction)) / speed : 2 * kRoomX;
  };
  return std::min(along(tiago.x, sign * std::cos(tiago.yaw), kRoomX),
                  along(tiago.y, sign * std::sin(tiago.yaw), kRoomY));
}

ScriptedPolicy Scripted(const char* name, const char* summary, Frame frame, Motion (*move)(const Sight&)) {
  return {name, summary, [frame, move](const double* observation, double* action) {
            const Motion motion = move(ReadSight(observation, frame));
            action[0] = motion.v;
            action[1] = motion.omega;
          }};
}

}  // namespace

Motion TurnAndDrive(const Sight& sight) {
  const double distance = Gap(sight.target);
  if (distance < kGoalDistance / 2) return {};
  const double bearing = std::atan2(sight.target.y, sight.target.x);
  // Slows down near the target, and by the cosine of the bearing while it turns.
  return {std::min(distance, kTopSpeed) * std::max(std::cos(bearing), 0.0), TurnTo(bearing)};
}

Motion BackOff(const Sight& sight) {
  const Motion drive = TurnAndDrive(sight);
  const Point fetch = NearestOfFetch(sight);
  const double danger = std::clamp((kFarGap - Gap(fetch)) / (kFarGap - kNearGap), 0.0, 1.0);
  // Drives ahead or backwards, whichever leads away from Fetch, and turns until that is straight away.
  const double away = fetch.x > 0 ? -1 : 1;
  const double bearing = std::atan2(-away * fetch.y, -away * fetch.x);
  Motion motion = {(1 - danger) * drive.v + danger * away * kTopSpeed,
                   (1 - danger) * drive.omega + danger * TurnTo(bearing)};
  const double room = RoomToDrive(sight.tiago, motion.v < 0 ? -1 : 1);
  motion.v = ClampTo(motion.v, std::max(room, 0.0));
  return motion;
}

std::vector<ScriptedPolicy> ScriptedPolicies(Frame frame) {
  return {Scripted("back_off", "Turns to the target and drives to it; gives way to Fetch.", frame, &BackOff),
          Scripted("turn_and_drive", "Turns to the target and drives to it; ignores everything else.", frame,
                   &TurnAndDrive)};
}

}  // namespace datacom::navigation
// SPDX-License-Identifier: Apache-2.0
