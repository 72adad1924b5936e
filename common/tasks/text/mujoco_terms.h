// The terms of the control-affine model of a text task, from MuJoCo: q_dot = f + G u (proto ConstraintState).
//
// With the mass matrix M, the bias c (Coriolis, centrifugal, gravity), the passive forces p and the actuators' forces
// tau(u), which are affine in u, MuJoCo's unconstrained motion is M a = p - c + tau(u). f holds a at u = 0, and G its
// derivatives by u; actuators that are not part of u keep their controls. Contacts, joint limits, equality constraints,
// friction loss and the limits of forces and controls are no part of the model. It is nominal: randomised physics do
// not reach it.
//
// In a robot with both motors and servos a servo holds its joint: the acceleration of the joint is the one that ends
// the control step, of length T, at the commanded velocity, (command - v) / T, or at the commanded position,
// ((command - p) / T - v) / T. The servo's force is whatever this takes, and it acts on the other joints through M.
//
// Not thread-safe: Terms and Differences own their mjData. Write neither blocks nor allocates.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_TERMS_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_TERMS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/text/mujoco_actuation.h"
#include "common/tasks/text/row_model.h"
#include "datacom/v1/task.pb.h"

namespace datacom::text {

// The joints of q, in the order of the file.
struct StateJoints {
  // INVALID_ARGUMENT "constraint_state.joint[i]: why".
  static absl::StatusOr<StateJoints> Make(const mjModel& model, const v1::ConstraintState& state);
  std::vector<std::string> PositionNames(const mjModel& model) const;
  std::vector<std::string> VelocityNames(const mjModel& model) const;

  std::vector<int> joints;
  std::vector<v1::ConstraintJoint::Kind> kinds;
  std::vector<int> dofs;  // in the order of q's velocities
};

// The model without constraints, contacts and limits of controls and forces: the one that f and G describe.
MujocoModel WithoutConstraints(const mjModel& model);

class Terms {
 public:
  // own: of the model `unconstrained`.
  Terms(MujocoModel unconstrained, MujocoData own, const StateJoints& joints, const Actuation& actuation,
        const v1::ConstraintState& state);

  // Writes q to `out`, [layout.q].
  void WriteState(const mjModel& model, const mjData& data, double* out) const;
  // Unless f and G have closed forms: writes accelerations [velocities], then their derivatives [velocities, action]
  // row-major. `fresh`: `data` belongs to the nominal physics and its mass matrix and bias match the state; its
  // controls and actuator forces are overwritten. Otherwise the terms are computed from a copy of state and controls.
  // False when MuJoCo fails.
  bool Write(const mjModel& model, mjData* data, bool fresh, double* out);

 private:
  void Solve(mjData* data, double* out);
  void HoldServos(mjData* data);

  MujocoModel unconstrained_;
  MujocoData own_;
  StateJoints joints_;
  std::vector<Actuation::Channel> channels_;
  bool positions_only_ = false, passive_ = true;
  double gain_ = 1, period_ = 0;
  std::vector<double> force_, acceleration_;  // [1 + action, nv]
  std::vector<int> servos_;                   // channels that hold their joints; empty unless motors are among them
  std::vector<double> pushed_;                // [servos, nv] accelerations by a unit force at each servo's joint
  std::vector<double> answer_, missing_;      // [servos, servos], [servos]
};

// f and G of a whole control step by finite differences (proto Control.dynamics): the task's own control step is
// simulated in a copy of the state, once without action and once for each number of the action.
//
// With velocities v of q, and v(u) after a control step of length T under the action u, f = (v(0) - v) / T and column i
// of G is (v(h e_i) - v(0)) / (h T). So f + G u is the mean acceleration over the control step. Where q has only
// positions, these take the place of v, and f + G u is the mean velocity. Servos, activations, contacts, joint limits,
// equality constraints, friction loss and limits of forces are part of it. Mocap bodies stand still. The model is
// nominal: randomised physics do not reach it.
class Differences {
 public:
  // own: of the model. `actuation` must outlive it.
  Differences(MujocoModel model, MujocoData own, const StateJoints& joints, const Actuation& actuation,
              double actuator_gain);

  // Writes f [velocities], then G [velocities, action] row-major, at the state of `data`. False when MuJoCo fails.
  bool Write(const mjData& data, double* out);

 private:
  void Take(const mjData& data);                  // keeps the state
  void Play(std::vector<double>* reached);        // a control step of action_ from the kept state
  void Read(std::vector<double>* numbers) const;  // velocities or positions of q

  MujocoModel model_;
  MujocoData own_;
  const Actuation* actuation_;
  std::vector<int> addresses_;  // of q's numbers that the differences are taken of, in qvel or qpos
  double gain_ = 1;
  std::vector<mjtNum> state_;
  std::vector<double> action_, clipped_, before_, free_, pushed_;
};

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_TERMS_H_
// SPDX-License-Identifier: Apache-2.0
