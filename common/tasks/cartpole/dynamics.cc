#include "common/tasks/cartpole/dynamics.h"

#include <cmath>
#include <memory>
#include <utility>

#include "common/base/status.h"
#include "common/tasks/register_task.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::cartpole {

void Dynamics::Evaluate(const double* obs, const ControlAffineOut& out) const {
  const double theta = std::atan2(obs[1], obs[2]);
  const double x_dot = obs[3], theta_dot = obs[4];
  if (out.q != nullptr) {
    out.q[0] = obs[0];
    out.q[1] = theta;
    out.q[2] = x_dot;
    out.q[3] = theta_dot;
  }
  if (out.f == nullptr && out.G == nullptr) return;
  // M [x_ddot; theta_ddot] = b + [F; 0], M = [[m11, m12], [m12, m22]].
  const double sine = std::sin(theta), cosine = std::cos(theta);
  const double m11 = kCartMass + kPoleMass;
  const double m12 = kPoleMass * kHalfLength * cosine;
  const double m22 = kPoleMass * kHalfLength * kHalfLength + kPoleInertia;
  const double determinant = m11 * m22 - m12 * m12;
  if (out.f != nullptr) {
    const double b0 = kPoleMass * kHalfLength * theta_dot * theta_dot * sine;
    const double b1 = kPoleMass * kGravity * kHalfLength * sine;
    out.f[0] = x_dot;
    out.f[1] = theta_dot;
    out.f[2] = (m22 * b0 - m12 * b1) / determinant;
    out.f[3] = (m11 * b1 - m12 * b0) / determinant;
  }
  if (out.G != nullptr) {
    out.G[0] = 0;
    out.G[1] = 0;
    out.G[2] = kInputGain * m22 / determinant;
    out.G[3] = -kInputGain * m12 / determinant;
  }
}

absl::StatusOr<TaskModel> MakeModel(const v1::TaskOptions& options) {
  RETURN_IF_ERROR(RejectOtherOptions("cartpole", options, {}));
  TaskModel model;
  model.spec.name = "cartpole";
  model.spec.summary =
      "Drive a cart so that the tip of its pole reaches a goal 5 m away; never let the pole fall below horizontal.";
  model.spec.obs_dim = 5;
  model.spec.observation_names = {"cart x / m", "sin pole angle", "cos pole angle", "cart velocity / m/s",
                                  "pole angular velocity / rad/s"};
  model.spec.action_names = {"force on the cart / 2 N"};
  model.spec.action_dim = 1;
  model.spec.action_low = {-1.0};
  model.spec.action_high = {1.0};
  model.spec.horizon = options.has_horizon() ? static_cast<int>(options.horizon()) : 1000;
  model.spec.control_dt = 1.0 / 120;
  model.spec.init_keys = {"x", "theta"};
  model.spec.rewards = RewardRange{0, 1, 0, 1};
  model.dynamics = std::make_shared<Dynamics>();
  ObservationSlice upright;
  upright.name = "pole";
  upright.title = "cart at the middle, at rest";
  upright.x_label = "pole angle / rad";
  upright.y_label = "pole angular velocity / rad/s";
  upright.x_low = -3.14159, upright.x_high = 3.14159, upright.y_low = -6, upright.y_high = 6;
  upright.at = [](double theta, double theta_dot, double* observation) {
    observation[0] = 0;
    observation[1] = std::sin(theta);
    observation[2] = std::cos(theta);
    observation[3] = 0;
    observation[4] = theta_dot;
    return true;
  };
  model.slices.push_back(std::move(upright));
  return model;
}

const RegisterTaskModel kRegistered("cartpole", &MakeModel);

}  // namespace datacom::cartpole
// SPDX-License-Identifier: Apache-2.0
