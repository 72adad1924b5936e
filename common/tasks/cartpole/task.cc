// CartPole in MuJoCo (specification: docs/cartpole.md): a cart on a 10 m rail starts at x = -1 with its
// pole upright. The pole's tip must reach the goal above x = 4 while the pole stays above the horizontal. An episode
// ends only at its horizon.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/tasks/cartpole/dynamics.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/register_task.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::cartpole {

extern const char kModelXml[];

namespace {

constexpr double kStartX = -1.0;           // m
constexpr int kSubsteps = 2;               // of 1/240 s
constexpr double kRewardDistance = 4.0;    // m at which the reward has fallen to 0
constexpr double kSuccessDistance = 0.25;  // m
constexpr double kSafeAngle = 1.5707;      // rad; the reference's literal, not pi / 2

// Not thread-safe; shares the compiled model, owns its mjData. Steps neither allocate nor block.
// The start is the same every time: `stream` is not used.
class CartPole : public SimulatedTask {
 public:
  CartPole(TaskSpec spec, Simulation simulation, int tip_site, int goal_site)
      : SimulatedTask(std::move(spec), std::move(simulation)), tip_site_(tip_site), goal_site_(goal_site) {}

  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* /*stream*/,
                       double* observation) override {
    RETURN_IF_ERROR(CheckStartValues(spec_, init));
    double x = kStartX, theta = 0;
    for (const auto& [key, value] : init) (key == "x" ? x : theta) = value;
    simulation_.Start([x, theta](const mjModel& model, mjData* data) {
      data->qpos[0] = x;
      data->qpos[1] = theta;
      mj_kinematics(&model, data);  // so that Success and renderers see the start, not the last episode
    });
    Observe(observation);
    return absl::OkStatus();
  }

  StepResult Step(const double* action, double* observation) override {
    StepResult result;
    // Written as comparisons so that a NaN reaches the simulator, which rejects it.
    simulation_.data()->ctrl[0] = action[0] < -1.0 ? -1.0 : action[0] > 1.0 ? 1.0 : action[0];
    result.valid = simulation_.Step(kSubsteps);
    Observe(observation);
    result.reward = std::clamp(1.0 - TipDistance() / kRewardDistance, 0.0, 1.0);
    result.cost = Cost();
    return result;
  }

  // |theta|, wrapped, divided by the reference's right angle, minus 1.
  double Cost() const override {
    const double theta = simulation_.data()->qpos[1];
    return std::abs(std::atan2(std::sin(theta), std::cos(theta))) / kSafeAngle - 1.0;
  }

  // The tip is within 0.25 m of the goal.
  bool Success() const override { return TipDistance() <= kSuccessDistance; }

 private:
  void Observe(double* observation) const {
    const mjData& data = *simulation_.data();
    observation[0] = data.qpos[0];
    observation[1] = std::sin(data.qpos[1]);
    observation[2] = std::cos(data.qpos[1]);
    observation[3] = data.qvel[0];
    observation[4] = data.qvel[1];
  }

  // From the tip to the goal, in m, of the kinematics that the last mj_step left.
  double TipDistance() const {
    const mjtNum* sites = simulation_.data()->site_xpos;
    return mju_dist3(sites + 3 * tip_site_, sites + 3 * goal_site_);
  }

  const int tip_site_, goal_site_;
};

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options) {
  static const auto* const compiled = new absl::StatusOr<MujocoModel>(CompileMujocoModel("cartpole", kModelXml));
  RETURN_IF_ERROR(compiled->status());
  const MujocoModel& model = **compiled;
  ASSIGN_OR_RETURN(TaskModel facts, MakeModel(options));
  ASSIGN_OR_RETURN(Simulation simulation, Simulation::Make(model));
  const int tip = mj_name2id(model.get(), mjOBJ_SITE, "pole_tip");
  const int goal = mj_name2id(model.get(), mjOBJ_SITE, "goal");
  if (tip < 0 || goal < 0) return absl::InternalError("model cartpole: no site pole_tip or goal");
  auto task = std::make_unique<CartPole>(std::move(facts.spec), std::move(simulation), tip, goal);
  double observation[5];
  task->Reset(nullptr, observation);
  return std::unique_ptr<Task>(std::move(task));
}

const RegisterTask kRegistered("cartpole", &MakeTask);

}  // namespace
}  // namespace datacom::cartpole
// SPDX-License-Identifier: Apache-2.0
