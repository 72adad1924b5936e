// The task's facts and its control-affine model, which every program loads.
#include <cmath>
#include <memory>

#include "common/base/status.h"
#include "common/tasks/register_task.h"
#include "datacom/v1/task_options.pb.h"
#include "pendulum.h"

namespace pendulum {
namespace {

// q = [angle, speed].
class Dynamics : public datacom::ControlAffine {
 public:
  datacom::ControlAffineDims dims() const override { return {3, 1, 2, 0}; }
  void Evaluate(const double* observation, const datacom::ControlAffineOut& out) const override {
    if (out.q != nullptr) {
      out.q[0] = std::atan2(observation[0], observation[1]);
      out.q[1] = observation[kSpeed];
    }
    if (out.f != nullptr) {
      out.f[0] = observation[kSpeed];
      out.f[1] = -kGravity * observation[0];
    }
    if (out.G != nullptr) {
      out.G[0] = 0;
      out.G[1] = kTorque;
    }
  }
};

}  // namespace

absl::StatusOr<datacom::TaskModel> MakeModel(const datacom::v1::TaskOptions& options) {
  RETURN_IF_ERROR(datacom::RejectOtherOptions("pendulum", options, {}));
  datacom::TaskModel model;
  model.spec.name = "pendulum";
  model.spec.summary = "Swing up a pendulum with a weak motor; never turn faster than 4 rad/s.";
  model.spec.obs_dim = 3;
  model.spec.observation_names = {"sin angle", "cos angle", "speed / rad/s"};
  model.spec.action_names = {"torque / 3 N m"};
  model.spec.action_dim = 1;
  model.spec.action_low = {-1};
  model.spec.action_high = {1};
  model.spec.horizon = options.has_horizon() ? static_cast<int>(options.horizon()) : 100;
  model.spec.control_dt = kStep;
  model.spec.init_keys = {"angle", "speed"};
  model.spec.rewards = datacom::RewardRange{0, 1, 0, 1};
  model.dynamics = std::make_shared<Dynamics>();
  model.cost = [](const double* observation) { return CostOf(observation[kSpeed]); };
  return model;
}

const datacom::RegisterTaskModel kRegistered("pendulum", &MakeModel);

}  // namespace pendulum
// SPDX-License-Identifier: Apache-2.0
