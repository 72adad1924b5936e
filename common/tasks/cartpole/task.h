// CartPole in MuJoCo (specification: docs/cartpole.md): a cart on a 10 m rail starts at x = -1 with its
// pole upright. The pole's tip must reach the goal above x = 4 while the pole stays above the horizontal. An episode
// ends only at its horizon.
#ifndef DATACOM_COMMON_TASKS_CARTPOLE_TASK_H_
#define DATACOM_COMMON_TASKS_CARTPOLE_TASK_H_

#include <map>
#include <memory>
#include <string>

#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"

namespace datacom::cartpole {

// Not thread-safe; shares the compiled model, owns its mjData. Steps neither allocate nor block.
// The start is the same every time: `stream` is not used.
class CartPole : public Task {
 public:
  CartPole(TaskSpec spec, Simulation simulation, int tip_site, int goal_site);

  const TaskSpec& spec() const override { return spec_; }
  void Reset(RandomStream* stream, double* observation) override;
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override;
  StepResult Step(const double* action, double* observation) override;
  double Cost() const override;   // |theta|, wrapped, divided by the reference's right angle, minus 1
  bool Success() const override;  // the tip is within 0.25 m of the goal
  void ScalePhysics(const PhysicsScale& scale) override { simulation_.Scale(scale); }
  const Simulation* simulation() const override { return &simulation_; }

 private:
  void Start(double x, double theta, double* observation);
  void Observe(double* observation) const;
  double TipDistance() const;  // m, tip to goal, of the kinematics that the last mj_step left

  const TaskSpec spec_;
  Simulation simulation_;
  const int tip_site_, goal_site_;
};

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options);

}  // namespace datacom::cartpole

#endif  // DATACOM_COMMON_TASKS_CARTPOLE_TASK_H_
// SPDX-License-Identifier: Apache-2.0
