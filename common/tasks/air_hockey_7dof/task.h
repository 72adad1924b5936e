// Air hockey with seven joints in MuJoCo (specification: docs/air_hockey.md). A control step is 20
// physics steps of 1 ms, each with the torques that give the commanded accelerations.
#ifndef DATACOM_COMMON_TASKS_AIR_HOCKEY_7DOF_TASK_H_
#define DATACOM_COMMON_TASKS_AIR_HOCKEY_7DOF_TASK_H_

#include <map>
#include <memory>
#include <string>

#include "common/base/random.h"
#include "common/tasks/hockey_rules.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"

namespace datacom::air_hockey_7dof {

// Not thread-safe; shares the compiled models, owns its data. Steps neither allocate nor block.
class AirHockey7 : public Task {
 public:
  // The puck starts within |y| <= puck_y. `arm` is the nominal model without contacts, for inverse dynamics.
  AirHockey7(TaskSpec spec, double puck_y, Simulation simulation, MujocoModel arm, MujocoData arm_data);

  const TaskSpec& spec() const override { return spec_; }
  void Reset(RandomStream* stream, double* observation) override;
  // Values that `init` does not name are drawn as by Reset; table frame.
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override;
  // The action is clipped to [-1, 1].
  StepResult Step(const double* action, double* observation) override;
  double Cost() const override { return cost_; }
  bool Success() const override { return rally_.ending() == air_hockey::Ending::kGoal; }
  void ScalePhysics(const PhysicsScale& scale) override { simulation_.Scale(scale); }
  const Simulation* simulation() const override { return &simulation_; }

 private:
  void Start(const air_hockey::PuckPlace& puck, double* observation);
  bool Substep(const double* acceleration);
  void Observe(double* observation);

  const TaskSpec spec_;
  const double puck_y_;
  Simulation simulation_;
  MujocoModel arm_;
  MujocoData arm_data_;
  double cost_ = 0;
  air_hockey::Rally rally_;
};

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options);

}  // namespace datacom::air_hockey_7dof

#endif  // DATACOM_COMMON_TASKS_AIR_HOCKEY_7DOF_TASK_H_
// SPDX-License-Identifier: Apache-2.0
