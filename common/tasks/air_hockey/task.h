// Planar air hockey in MuJoCo (specification: docs/air_hockey.md): a three-joint arm must shoot a
// resting puck into the opponent's goal while its joints stay within limits and its mallet keeps off the near end and
// the sides of the table. An episode ends when the puck reaches an end of the table or, on the opponent's half, a side.
//
// A control step is 20 physics steps of 1 ms. Each limits the desired acceleration again and turns it into torques by
// the arm's inverse dynamics at the joint positions and the low-pass filtered joint velocities. The observation's
// entries for the mallet are 1 ms old, like MuJoCo's kinematics after mj_step.
#ifndef DATACOM_COMMON_TASKS_AIR_HOCKEY_TASK_H_
#define DATACOM_COMMON_TASKS_AIR_HOCKEY_TASK_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "common/tasks/hockey_rules.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"

namespace datacom::air_hockey {

// Inverse dynamics of the arm without the puck: the joint torques for an acceleration, including the forces of the
// joint limits. Always of the nominal arm, even when the simulated one is scaled.

// Not thread-safe: owns an mjData; all instances share one model, compiled at the first Make. Torque allocates nothing;
// call it under a MujocoGuard.
class InverseDynamics {
 public:
  static absl::StatusOr<InverseDynamics> Make();

  // Arrays [3]: rad, rad/s, rad/s^2 -> N m.
  void Torque(const double* position, const double* velocity, const double* acceleration, double* torque);

 private:
  InverseDynamics(MujocoModel model, MujocoData data) : model_(std::move(model)), data_(std::move(data)) {}
  MujocoModel model_;
  MujocoData data_;
};

// Not thread-safe; shares the compiled models, owns its data. Steps neither allocate nor block.
class AirHockey : public SimulatedTask {
 public:
  struct Options {
    double puck_y = 0;          // the puck starts within |y| <= puck_y, table frame, m
    double mismatch_sigma = 0;  // executed instead of a: a + N(0, sigma^2) - sigma * filtered joint velocity
  };
  // `mallet_body` of the simulation's model, whose joints are the arm's and then the puck's x, y and yaw.
  AirHockey(TaskSpec spec, const Options& options, Simulation simulation, InverseDynamics inverse_dynamics,
            int mallet_body);

  // Values that `init` does not name are drawn; table frame.
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override;
  // The action is not clipped; the acceleration is.
  StepResult Step(const double* action, double* observation) override;
  bool Success() const override { return rally_.ending() == Ending::kGoal; }

  // Does what Step does, with the mismatch's noise given by the caller: [3], in units of the action.
  StepResult StepWithNoise(const double* action, const double* noise, double* observation);
  // One physics step towards the acceleration `desired` ([3], rad/s^2); false when the simulator fails or warns.
  bool Substep(const double* desired);
  const double* filtered_velocity() const { return filtered_; }  // [3], rad/s
  Ending ending() const { return rally_.ending(); }

 private:
  void Observe(double* observation) const;
  double CostNow() const;

  const Options options_;
  InverseDynamics inverse_dynamics_;
  const int mallet_body_;

  RandomStream noise_{0};  // of the mismatch; a new stream every episode
  double filtered_[3] = {};
  Rally rally_;
};

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options);

}  // namespace datacom::air_hockey

#endif  // DATACOM_COMMON_TASKS_AIR_HOCKEY_TASK_H_
// SPDX-License-Identifier: Apache-2.0
