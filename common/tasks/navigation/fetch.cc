#include "common/tasks/navigation/fetch.h"

namespace datacom::navigation {
namespace {

constexpr double kArrivedDistance = 0.1;        // m
constexpr double kArrivedAngle = 0.1;           // rad
constexpr double kMaxSpeed = 0.7;               // m/s
constexpr double kMaxTurn = 1.5;                // rad/s
constexpr double kWallSlack = 0.9;              // m from a wall where it begins to slow down; stops 0.5 m further on
constexpr double kTraction = 1.4;               // m/s^2
constexpr double kYawTraction = 4.0;            // rad/s^2
constexpr Arm kAmplitude = {1, 0.3, 0.4, 0.5};  // rad

// Lengths of the chain in m; see model.xml for the joints they separate.
constexpr double kShoulderX = 0.03625, kShoulderZ = 0.78461;
constexpr double kPanToLift = 0.117, kLiftToElbow = 0.352, kElbowToWrist = 0.3215;
// A link's centre of mass: `along` the link from its joint, `left` of the arm's plane, `up` from the link's axis.
struct Centre {
  double along, left, up;
};
constexpr Centre kCentres[kLinkPoints] = {
    {0.1432, 0.0072, -0.0001}, {0.1279, 0.0073, 0}, {0.0882, 0.0009, -0.0001}, {0.29495, -0.015425, 0}};

// A link point in the vertical plane of the arm: distance from the pan axis, height.
struct ArmPoint {
  double rho, z;
};

// Joint i of the three that bend the arm turns all links after it; wrist and hand move with the same joint.
ArmPoint InArmPlane(const double* cosine, const double* sine, int point) {
  const int link = std::min(point, 2);
  const Centre& centre = kCentres[point];
  ArmPoint at = {kPanToLift + centre.along * cosine[link] + centre.up * sine[link],
                 kShoulderZ - centre.along * sine[link] + centre.up * cosine[link]};
  const double lengths[2] = {kLiftToElbow, kElbowToWrist};
  for (int i = 0; i < link; ++i) {
    at.rho += lengths[i] * cosine[i];
    at.z -= lengths[i] * sine[i];
  }
  return at;
}

// The angles of the three bent links below the horizontal.
void BendAngles(const Arm& arm, double* cosine, double* sine) {
  double angle = 0;
  for (int i = 0; i < 3; ++i) {
    angle += arm[i + 1];
    cosine[i] = std::cos(angle);
    sine[i] = std::sin(angle);
  }
}

}  // namespace

bool FetchArrived(const PlanarState& fetch, const Point& target) {
  return Distance(fetch, target) < kArrivedDistance && BearingError(fetch, target) < kArrivedAngle;
}

Motion FetchCommand(const PlanarState& fetch, const Point& target) {
  Motion command = {ClampTo(0.5 * Distance(fetch, target), kMaxSpeed), ClampTo(BearingError(fetch, target), kMaxTurn)};
  constexpr double kStill = 1e-3;  // m/s
  constexpr double kNearX = kRoomX - kWallSlack, kNearY = kRoomY - kWallSlack;
  if ((fetch.x > kNearX && fetch.vx > kStill) || (fetch.x < -kNearX && fetch.vx < -kStill) ||
      (fetch.y > kNearY && fetch.vy > kStill) || (fetch.y < -kNearY && fetch.vy < -kStill)) {
    const double beyond = std::max(std::abs(fetch.x) - kNearX, std::abs(fetch.y) - kNearY);
    command.v *= std::clamp(1 - beyond / 0.5, 0.0, 1.0);
  }
  return command;
}

Motion FetchChange(const Motion& current, const Motion& command, double friction) {
  return {ClampTo(command.v - current.v, friction * kTraction * kControlDt),
          ClampTo(command.omega - current.omega, friction * kYawTraction * kControlDt)};
}

const Arm& ArmPattern::Next() {
  for (int i = 0; i < kArmJoints; ++i) {
    if (target_[i] > kAmplitude[i]) increment_[i] *= -1;
    if (target_[i] < -kAmplitude[i]) increment_[i] *= -1;
    target_[i] += increment_[i];
  }
  return target_;
}

LinkPoints FetchLinkPoints(const PlanarState& fetch, const Arm& arm) {
  double cosine[3], sine[3];
  BendAngles(arm, cosine, sine);
  const double pan_cosine = std::cos(fetch.yaw + arm[0]), pan_sine = std::sin(fetch.yaw + arm[0]);
  const double shoulder_x = fetch.x + kShoulderX * std::cos(fetch.yaw);
  const double shoulder_y = fetch.y + kShoulderX * std::sin(fetch.yaw);
  LinkPoints points;
  for (int i = 0; i < kLinkPoints; ++i) {
    const ArmPoint at = InArmPlane(cosine, sine, i);
    const double left = kCentres[i].left;
    points[i] = {shoulder_x + at.rho * pan_cosine - left * pan_sine, shoulder_y + at.rho * pan_sine + left * pan_cosine,
                 at.z};
  }
  return points;
}

HandAxes FetchHandAxes(const PlanarState& fetch, const Arm& arm) {
  return {fetch.yaw + arm[0], arm[1] + arm[2] + arm[3]};
}

Point FetchHandVelocity(const PlanarState& fetch, const Arm& arm, const Arm& arm_rate, const HandAxes& reported_by) {
  double cosine[3], sine[3];
  BendAngles(arm, cosine, sine);
  // In the arm's plane, the hand turns about each bending joint.
  const ArmPoint hand = InArmPlane(cosine, sine, kHand);
  const double lengths[2] = {kLiftToElbow, kElbowToWrist};
  ArmPoint joint = {kPanToLift, kShoulderZ}, rate = {0, 0};
  for (int i = 0; i < 3; ++i) {
    rate.rho += arm_rate[i + 1] * (hand.z - joint.z);
    rate.z -= arm_rate[i + 1] * (hand.rho - joint.rho);
    if (i < 2) joint = {joint.rho + lengths[i] * cosine[i], joint.z - lengths[i] * sine[i]};
  }
  // Along the arm's plane and to its left, with the shoulder's motion.
  const HandAxes axes = FetchHandAxes(fetch, arm);
  const double shoulder_vx = fetch.vx - fetch.yaw_rate * kShoulderX * std::sin(fetch.yaw);
  const double shoulder_vy = fetch.vy + fetch.yaw_rate * kShoulderX * std::cos(fetch.yaw);
  const double c = std::cos(axes.heading), s = std::sin(axes.heading), turn = fetch.yaw_rate + arm_rate[0];
  const double ahead = shoulder_vx * c + shoulder_vy * s + rate.rho - turn * kCentres[kHand].left;
  const double left = -shoulder_vx * s + shoulder_vy * c + turn * hand.rho;

  const double tilt = reported_by.bend - axes.bend;
  const double reported_ahead = ahead * std::cos(tilt) + rate.z * std::sin(tilt);
  const double rc = std::cos(reported_by.heading), rs = std::sin(reported_by.heading);
  return {reported_ahead * rc - left * rs, reported_ahead * rs + left * rc};
}

}  // namespace datacom::navigation
// SPDX-License-Identifier: Apache-2.0
