#include "common/tasks/air_hockey/arm.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace datacom::air_hockey {
namespace {

constexpr double kVelocityGain = 5.0;  // 1/s

// A posture and its distance from the start; infinite when it exceeds a limit.
struct Posture {
  double q[kJoints] = {};
  double distance = std::numeric_limits<double>::infinity();  // squared
};

// The posture with the last link in direction `last`; the rest is a two-link arm with `elbow` = +1 or -1.
Posture WithLastLink(double x, double y, double last, double elbow) {
  const double wrist_x = x - kLinks[2] * std::cos(last), wrist_y = y - kLinks[2] * std::sin(last);
  const double square = wrist_x * wrist_x + wrist_y * wrist_y;
  const double cosine = (square - kLinks[0] * kLinks[0] - kLinks[1] * kLinks[1]) / (2 * kLinks[0] * kLinks[1]);
  Posture posture;
  posture.q[1] = elbow * std::acos(std::clamp(cosine, -1.0, 1.0));
  posture.q[0] = std::atan2(wrist_y, wrist_x) -
                 std::atan2(kLinks[1] * std::sin(posture.q[1]), kLinks[0] + kLinks[1] * std::cos(posture.q[1]));
  posture.q[0] = std::remainder(posture.q[0], 2 * M_PI);
  posture.q[2] = std::remainder(last - posture.q[0] - posture.q[1], 2 * M_PI);
  double distance = 0;
  for (int i = 0; i < kJoints; ++i) {
    if (std::abs(posture.q[i]) > kPositionLimits[i] + 1e-12) return posture;
    distance += (posture.q[i] - kStartPosition[i]) * (posture.q[i] - kStartPosition[i]);
  }
  posture.distance = distance;
  return posture;
}

// The nearest posture whose last link is turned from the direction of (x, y) by low .. high: samples, then a
// golden-section search between the best sample's neighbours.
Posture Nearest(double x, double y, double low, double high, double elbow) {
  constexpr int kSamples = 48;
  constexpr double kGolden = 0.6180339887498949;
  const double direction = std::atan2(y, x), step = (high - low) / kSamples;
  const auto at = [&](double turn) { return WithLastLink(x, y, direction + turn, elbow); };
  Posture best;
  int place = 0;
  for (int i = 0; i <= kSamples; ++i) {
    const Posture posture = at(low + i * step);
    if (posture.distance < best.distance) {
      best = posture;
      place = i;
    }
  }
  double left = low + std::max(place - 1, 0) * step, right = low + std::min(place + 1, kSamples) * step;
  for (int i = 0; i < 40; ++i) {
    const double a = right - kGolden * (right - left), b = left + kGolden * (right - left);
    const Posture at_a = at(a), at_b = at(b);
    if (at_a.distance < best.distance) best = at_a;
    if (at_b.distance < best.distance) best = at_b;
    (at_a.distance <= at_b.distance ? right : left) = at_a.distance <= at_b.distance ? b : a;
  }
  return best;
}

}  // namespace

void ForwardKinematics(const double* q, double* mallet, double* jacobian) {
  double angle = 0, x[kJoints], y[kJoints];  // of each link's vector
  for (int i = 0; i < kJoints; ++i) {
    angle += q[i];
    x[i] = kLinks[i] * std::cos(angle);
    y[i] = kLinks[i] * std::sin(angle);
  }
  mallet[0] = x[0] + x[1] + x[2];
  mallet[1] = y[0] + y[1] + y[2];
  if (jacobian == nullptr) return;
  double sum_x = 0, sum_y = 0;
  for (int j = kJoints - 1; j >= 0; --j) {
    sum_x += x[j];
    sum_y += y[j];
    jacobian[j] = -sum_y;
    jacobian[kJoints + j] = sum_x;
  }
}

bool InverseKinematics(double x, double y, double* q) {
  // The elbow, bent to its limit or stretched, bounds the wrist's distance and with it the last link's turn.
  const double wide = kLinks[0] + kLinks[1];
  const double narrow = std::sqrt(kLinks[0] * kLinks[0] + kLinks[1] * kLinks[1] +
                                  2 * kLinks[0] * kLinks[1] * std::cos(kPositionLimits[1]));
  const double square = x * x + y * y, product = 2 * kLinks[2] * std::sqrt(square);
  if (product == 0) return false;                                                        // on the first joint's axis
  const double farthest = (square + kLinks[2] * kLinks[2] - narrow * narrow) / product;  // cosines of the turn
  const double nearest = (square + kLinks[2] * kLinks[2] - wide * wide) / product;
  if (nearest > 1 || farthest < -1) return false;
  const double low = std::acos(std::clamp(farthest, -1.0, 1.0)), high = std::acos(std::clamp(nearest, -1.0, 1.0));
  Posture best;
  for (const double elbow : {1.0, -1.0}) {
    for (const auto& [from, to] : {std::pair{low, high}, std::pair{-high, -low}}) {
      const Posture posture = Nearest(x, y, from, to, elbow);
      if (posture.distance < best.distance) best = posture;
    }
  }
  if (!std::isfinite(best.distance)) return false;
  std::copy_n(best.q, kJoints, q);
  return true;
}

void LimitAcceleration(const double* desired, const double* velocity, double* acceleration) {
  for (int i = 0; i < kJoints; ++i) {
    const double upper = std::min(kAccelerationLimits[i], kVelocityGain * (kVelocityLimits[i] - velocity[i]));
    const double lower = std::max(-kAccelerationLimits[i], kVelocityGain * (-kVelocityLimits[i] - velocity[i]));
    const double raised = desired[i] < lower ? lower : desired[i];
    acceleration[i] = raised > upper ? upper : raised;
  }
}

namespace {

constexpr double kHeight = 0.1, kHeightTolerance = 0.02;  // m, of the mallet in the robot's frame; constant

constexpr int kStates = 2 * kJoints;
constexpr int kMalletRow = 2 * kJoints;       // first of 5
constexpr int kVelocityRow = kMalletRow + 5;  // first of 6

}  // namespace

double Cost(const double* q, const double* velocity, const double* mallet) {
  double cost = std::max({kLowestMalletX - mallet[0], -kLargestMalletY - mallet[1], mallet[1] - kLargestMalletY});
  for (int i = 0; i < kJoints; ++i) {
    const double position = kLimitShare * kPositionLimits[i], speed = kLimitShare * kVelocityLimits[i];
    cost = std::max({cost, q[i] - position, -q[i] - position, velocity[i] - speed, -velocity[i] - speed});
  }
  return cost;
}

Constraints::Constraints() {
  for (const char* side : {"upper", "lower"}) {
    for (int i = 1; i <= kJoints; ++i) Add("joint_position", absl::StrCat("joint_", i, "_", side), 1.0);
  }
  for (const char* name : {"mallet_x_lower", "mallet_y_lower", "mallet_y_upper", "mallet_z_lower", "mallet_z_upper"}) {
    Add("end_effector", name, 0.5);
  }
  for (const char* side : {"upper", "lower"}) {
    for (int i = 1; i <= kJoints; ++i) Add("joint_velocity", absl::StrCat("velocity_", i, "_", side), 0.0);
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
    out.k[kMalletRow] = kLowestMalletX - mallet[0];
    out.k[kMalletRow + 1] = -kLargestMalletY - mallet[1];
    out.k[kMalletRow + 2] = mallet[1] - kLargestMalletY;
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
