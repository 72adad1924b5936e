#include "common/tasks/hockey_rules.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/norm.h"
#include "common/base/status.h"
#include "common/safety/control_affine.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::air_hockey {
namespace {

constexpr double kGoalX = 2.43;
constexpr double kGoalHalfWidth = 0.1;
// Discounted return of 300 steps of reward 1 at a discount of 0.99: (1 - 0.99^300) / (1 - 0.99).
constexpr double kEndingScale = 95.09591059287133;

// The equal angle in [-pi, pi).
double WrapAngle(double angle) { return angle - 2 * M_PI * std::floor((angle + M_PI) / (2 * M_PI)); }

class Dynamics : public ControlAffine {
 public:
  Dynamics(int observation, const std::vector<double>& gains)
      : gains_(gains), n_(static_cast<int>(gains.size())), dims_{observation, n_, 2 * n_, 0} {}
  ControlAffineDims dims() const override { return dims_; }
  void Evaluate(const double* obs, const ControlAffineOut& out) const override {
    if (out.q != nullptr) std::copy_n(obs + kJointPosition, 2 * n_, out.q);
    if (out.f != nullptr) {
      std::copy_n(obs + kJointPosition + n_, n_, out.f);
      std::fill_n(out.f + n_, n_, 0.0);
    }
    if (out.G == nullptr) return;
    std::fill_n(out.G, 2 * n_ * n_, 0.0);
    for (int i = 0; i < n_; ++i) out.G[(n_ + i) * n_ + i] = gains_[i];
  }

 private:
  const std::vector<double> gains_;
  const int n_;
  const ControlAffineDims dims_;
};

}  // namespace

absl::StatusOr<PuckPlace> DrawPuck(const TaskSpec& spec, double largest_y, const std::map<std::string, double>& init,
                                   RandomStream* stream) {
  RETURN_IF_ERROR(CheckStartValues(spec, init));
  PuckPlace puck;
  puck.x = stream->Uniform(kPuckLowX, kPuckHighX);
  puck.y = stream->Uniform(-largest_y, largest_y);
  puck.yaw = stream->Uniform(-M_PI, M_PI);
  for (const auto& [key, value] : init) (key == "puck_x" ? puck.x : key == "puck_y" ? puck.y : puck.yaw) = value;
  return puck;
}

void PlacePuck(const PuckPlace& puck, double* position) {
  position[0] = puck.x;
  position[1] = puck.y;
  position[2] = puck.yaw;
}

void ObservePuck(const double* position, const double* velocity, double* observation) {
  observation[kPuckPosition] = position[0] + kBaseX;
  observation[kPuckPosition + 1] = position[1];
  observation[kPuckPosition + 2] = WrapAngle(position[2]);
  std::copy_n(velocity, 3, observation + kPuckVelocity);
}

TaskModel HockeyModel(const std::vector<double>& gains, const std::vector<std::string>& mallet,
                      const v1::TaskOptions& options) {
  const int joints = static_cast<int>(gains.size());
  TaskModel model;
  TaskSpec& spec = model.spec;
  spec.observation_names = {
      "puck x / m",           "puck y / m", "puck yaw / rad", "puck velocity x / m/s", "puck velocity y / m/s",
      "puck yaw rate / rad/s"};
  for (const char* what : {" / rad", " velocity / rad/s"}) {
    for (int i = 1; i <= joints; ++i) spec.observation_names.push_back(absl::StrCat("joint ", i, what));
  }
  spec.observation_names.insert(spec.observation_names.end(), mallet.begin(), mallet.end());
  spec.obs_dim = static_cast<int>(spec.observation_names.size());
  for (int i = 1; i <= joints; ++i) spec.action_names.push_back(absl::StrCat("joint ", i, " acceleration / its limit"));
  spec.action_dim = joints;
  spec.action_low.assign(joints, -1.0);
  spec.action_high.assign(joints, 1.0);
  spec.horizon = options.has_horizon() ? static_cast<int>(options.horizon()) : 300;
  spec.control_dt = 0.02;
  spec.init_keys = {"puck_x", "puck_y", "puck_yaw"};
  spec.absorbing = "a goal or the puck reaching an end or side of the table";
  spec.rewards = RewardRange{0, 0, 0, 142.7, -96.1, 96.1};  // docs/air_hockey.md 5
  model.dynamics = std::make_shared<Dynamics>(spec.obs_dim, gains);
  return model;
}

PuckState PuckOf(const double* observation) {
  return {observation[kPuckPosition], observation[kPuckPosition + 1], observation[kPuckVelocity],
          observation[kPuckVelocity + 1]};
}

Ending EndingOf(const PuckState& puck) {
  const auto [x, y, vx, vy] = puck;
  if (x < 0.58 || (x < 0.63 && vx > 0)) return Ending::kBottom;
  if (x > kGoalX || (x > 2.39 && vx < 0)) return std::abs(y) < kGoalHalfWidth ? Ending::kGoal : Ending::kUp;
  if (vx > 0 && x > kBaseX) {
    if ((y > 0.45 && vy > 0) || (y > 0.42 && vy < 0)) return Ending::kLeft;
    // The published code also tests y < -0.45 with vx < 0 here, which cannot hold, so on this side an episode ends only
    // after the bounce.
    if (y < -0.42 && vy > 0) return Ending::kRight;
  }
  return Ending::kNone;
}

double GoalDistance(const PuckState& puck) { return Norm(puck.x - kGoalX, puck.y); }

double EndingReward(Ending ending, const PuckState& puck) {
  const double off = std::abs(puck.y);
  switch (ending) {
    case Ending::kGoal:
      return kEndingScale * (1.5 - 5 * std::clamp(off, 0.0, 0.1));
    case Ending::kUp:
      return kEndingScale * (1 - 2 * std::clamp(off - 0.1, 0.0, 0.35));
    case Ending::kLeft:
    case Ending::kRight:
      return kEndingScale * (0.3 - 0.3 * std::clamp(kGoalX - puck.x, 0.0, 1.0));
    case Ending::kBottom:
    case Ending::kNone:
      break;
  }
  return 0;
}

void Rally::Score(const PuckState& puck, StepResult* result) {
  const Ending ending = EndingOf(puck);
  const double distance = GoalDistance(puck);
  result->absorbing = ending != Ending::kNone;
  if (result->absorbing) {
    result->reward = EndingReward(ending, puck);
  } else if (goal_distance_ >= 0) {
    result->reward = kApproachReward * (goal_distance_ - distance);
  }
  goal_distance_ = distance;
  if (ending_ == Ending::kNone) ending_ = ending;
}

}  // namespace datacom::air_hockey
// SPDX-License-Identifier: Apache-2.0
