// f and G of a whole control step by finite differences (proto Control.dynamics): the task's own control step is
// simulated in a copy of the state, once without action and once for each number of the action.
//
// With velocities v of q, and v(u) after a control step of length T under the action u, f = (v(0) - v) / T and column i
// of G is (v(h e_i) - v(0)) / (h T). So f + G u is the mean acceleration over the control step. Where q has only
// positions, these take the place of v, and f + G u is the mean velocity. Servos, activations, contacts, joint limits,
// equality constraints, friction loss and limits of forces are part of it. Mocap bodies stand still. The model is
// nominal: randomised physics do not reach it.
//
// Not thread-safe: owns its mjData. Write neither blocks nor allocates.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_DIFFERENCES_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_DIFFERENCES_H_

#include <vector>

#include "common/tasks/mujoco.h"
#include "common/tasks/text/mujoco_actuation.h"
#include "common/tasks/text/mujoco_terms.h"

namespace datacom::text {

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

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_DIFFERENCES_H_
// SPDX-License-Identifier: Apache-2.0
