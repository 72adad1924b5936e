#include "common/base/norm.h"
#include "common/tasks/air_hockey/dynamics.h"

#include <algorithm>
#include <cmath>

#include "common/tasks/air_hockey/arm.h"

namespace datacom::air_hockey {
namespace {

constexpr double kGoalX = 2.43;                      // m: the puck is to cross it at y = 0
constexpr double kRunUp = 0.15;                      // m between the mallet and the contact before a strike
constexpr double kStrikeSpeed = 3.0;                 // m/s, more than the joints' limits allow
constexpr double kMoveSpeed = 0.8;                   // m/s before the strike
constexpr double kOnLine = 0.001, kOffLine = 0.012;  // m beside the line: strikes at full speed; does not strike
constexpr double kPositionGain = 10, kVelocityGain = 100, kPostureGain = 1;  // 1/s
constexpr double kRimMargin = 0.015;                                         // m
constexpr double kPuckMoves = 0.05;                                          // m/s
constexpr double kVelocityShare = 0.9;                                       // of the joints' velocity limits
constexpr double kDamping = 0.001;                                           // m^2, of the pseudo-inverse

// The damped pseudo-inverse of the mallet's Jacobian [2, 3].
class Inverse {
 public:
  explicit Inverse(const double* jacobian) : x_(jacobian), y_(jacobian + kJoints) {
    for (int i = 0; i < kJoints; ++i) xx_ += x_[i] * x_[i], xy_ += x_[i] * y_[i], yy_ += y_[i] * y_[i];
    determinant_ = xx_ * yy_ - xy_ * xy_;
  }
  // Adds a small motion of the joints that moves the mallet by about (x, y); by less where the arm is nearly stretched.
  void Add(double x, double y, double* joints) const {
    const double a = (yy_ * x - xy_ * y) / determinant_, b = (xx_ * y - xy_ * x) / determinant_;
    for (int i = 0; i < kJoints; ++i) joints[i] += a * x_[i] + b * y_[i];
  }
  double X(const double* joints) const { return x_[0] * joints[0] + x_[1] * joints[1] + x_[2] * joints[2]; }
  double Y(const double* joints) const { return y_[0] * joints[0] + y_[1] * joints[1] + y_[2] * joints[2]; }

 private:
  const double* const x_;
  const double* const y_;
  double xx_ = kDamping, xy_ = 0, yy_ = kDamping, determinant_;
};

// Scales `values` into the limits times `share`, then adds as much of `extra` as they leave room for.
void AddWithin(const double* limits, double share, const double* extra, double* values) {
  double scale = 1, room = 1;
  for (int i = 0; i < kJoints; ++i) scale = std::min(scale, share * limits[i] / std::max(std::abs(values[i]), 1e-12));
  for (int i = 0; i < kJoints; ++i) values[i] *= scale;
  for (int i = 0; i < kJoints; ++i) {
    if (extra[i] == 0) continue;
    room = std::min(room, (share * limits[i] - std::copysign(values[i], values[i] * extra[i])) / std::abs(extra[i]));
  }
  room = std::max(room, 0.0);
  for (int i = 0; i < kJoints; ++i) values[i] += room * extra[i];
}

// The wanted velocity of the mallet, in the axes of a line on the table.
struct Aim {
  double x = 1, y = 0;  // the line's direction
  double ahead = 0;     // m/s along it
  double aside = 0;     // m/s to its left
};

Aim AimFor(const double* puck, const double* mallet) {
  Aim aim;
  const double distance = std::max(Norm(kGoalX - puck[0], puck[1]), 1e-3);
  aim.x = (kGoalX - puck[0]) / distance;
  aim.y = -puck[1] / distance;
  const double contact = kPuckRadius + kMalletRadius;
  const double contact_x = puck[0] - contact * aim.x, contact_y = puck[1] - contact * aim.y;
  const double behind = (contact_x - mallet[0]) * aim.x + (contact_y - mallet[1]) * aim.y;
  const double beside = (contact_x - mallet[0]) * aim.y - (contact_y - mallet[1]) * aim.x;
  // The run-up ends before the near end and the sides.
  const double near_x = kBaseX - kHalfLength + kMalletRadius + kRimMargin;
  const double side_y = kHalfWidth - kMalletRadius - kRimMargin;
  double run_up = std::min(kRunUp, (contact_x - near_x) / std::max(aim.x, 1e-3));
  run_up = std::min(run_up, (side_y - std::abs(contact_y)) / std::max(std::abs(aim.y), 1e-3));
  const double to_start = std::clamp(kPositionGain * (behind - run_up), -kMoveSpeed, kMoveSpeed);
  const double share = std::clamp((kOffLine - std::abs(beside)) / (kOffLine - kOnLine), 0.0, 1.0);
  aim.ahead = share * kStrikeSpeed + (1 - share) * to_start;
  aim.aside = std::clamp(-kPositionGain * beside, -kMoveSpeed, kMoveSpeed);
  return aim;
}

}  // namespace

void Strike(const double* observation, double* action) {
  const double* const q = observation + kJointPosition;
  const double* const velocity = observation + kJointVelocity;
  double mallet[2], jacobian[2 * kJoints];
  ForwardKinematics(q, mallet, jacobian);
  const Inverse inverse(jacobian);
  Aim aim;  // at rest
  if (Norm(observation[kPuckVelocity], observation[kPuckVelocity + 1]) < kPuckMoves) {
    aim = AimFor(observation + kPuckPosition, mallet);
  }

  // Joint velocities: those that keep the mallet on the line come first, then the strike. Motion that leaves the
  // mallet in place turns the arm to the start's posture.
  double posture[kJoints], wanted[kJoints], ahead[kJoints] = {};
  for (int i = 0; i < kJoints; ++i) posture[i] = wanted[i] = kPostureGain * (kStartPosition[i] - q[i]);
  inverse.Add(-aim.aside * aim.y - inverse.X(posture), aim.aside * aim.x - inverse.Y(posture), wanted);
  inverse.Add(aim.ahead * aim.x, aim.ahead * aim.y, ahead);
  AddWithin(kVelocityLimits, kVelocityShare, ahead, wanted);

  // Joint accelerations in the same order. The turning links accelerate the mallet inwards; this is compensated.
  double error[kJoints], acceleration[kJoints], faster[kJoints] = {};
  for (int i = 0; i < kJoints; ++i) acceleration[i] = error[i] = kVelocityGain * (wanted[i] - velocity[i]);
  const double error_ahead = inverse.X(error) * aim.x + inverse.Y(error) * aim.y;
  inverse.Add(error_ahead * aim.x, error_ahead * aim.y, faster);
  double angle = 0, turn = 0, inwards_x = 0, inwards_y = 0;
  for (int i = 0; i < kJoints; ++i) {
    angle += q[i];
    turn += velocity[i];
    inwards_x += kLinks[i] * std::cos(angle) * turn * turn;
    inwards_y += kLinks[i] * std::sin(angle) * turn * turn;
    acceleration[i] -= faster[i];
  }
  inverse.Add(inwards_x, inwards_y, acceleration);
  AddWithin(kAccelerationLimits, 1, faster, acceleration);
  for (int i = 0; i < kJoints; ++i) action[i] = acceleration[i] / kAccelerationLimits[i];
}

}  // namespace datacom::air_hockey
// SPDX-License-Identifier: Apache-2.0
