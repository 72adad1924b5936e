// Navigation in MuJoCo (specification: docs/navigation.md): TIAGo++ drives to a target in a room of 7 m
// by 5 m, in which a Fetch robot drives from one random target to the next and waves its arm. Touching Fetch or a wall
// ends the episode.
//
// All moving parts are simulated: TIAGo++ with three planar joints, Fetch with three and its four arm joints. Drives
// and servos command accelerations, inverse dynamics turns them into joint forces, and MuJoCo integrates these together
// with the contact forces. Without contact, TIAGo++ follows its torque-limited wheels, and the arm its first-order
// servos, to rounding; a collision pushes real masses. Writing the arm's joints directly, or mocap links, would instead
// put immovable geometry into the contact.
#ifndef DATACOM_COMMON_TASKS_NAVIGATION_TASK_H_
#define DATACOM_COMMON_TASKS_NAVIGATION_TASK_H_

#include <array>
#include <map>
#include <memory>
#include <string>

#include "common/base/random.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/navigation/fetch.h"
#include "common/tasks/navigation/observation.h"
#include "common/tasks/navigation/wheel_drive.h"
#include "common/tasks/task.h"

namespace datacom::navigation {

// Not thread-safe; shares the compiled model, owns its mjData. Steps neither allocate nor block. Actions are not
// clipped. Fetch's later targets come from a child of the reset's stream.
class Navigation : public Task {
 public:
  // Bodies in the compiled model.
  struct ModelIds {
    int tiago_body = 0;
    int target_mocap = 0, fetch_target_mocap = 0;
  };
  Navigation(TaskSpec spec, Simulation simulation, const ModelIds& ids, bool paper_reward, Frame frame);

  const TaskSpec& spec() const override { return spec_; }
  void Reset(RandomStream* stream, double* observation) override;
  // Named values replace drawn ones; a drawn Fetch position keeps its distance from TIAGo++'s.
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override;
  StepResult Step(const double* action, double* observation) override;
  double Cost() const override { return cost_; }
  bool Success() const override;  // at the target, without a collision in this episode
  // Friction scales contacts, the grip of the wheels and Fetch's traction; the joints have no damping. Motors keep
  // their torque.
  void ScalePhysics(const PhysicsScale& scale) override;
  const Simulation* simulation() const override { return &simulation_; }

 private:
  void Start(const std::map<std::string, double>& init, RandomStream* stream, double* observation);
  // Applies the commands and `arm_target` for one control step; false when the state has become invalid.
  bool Simulate(const Motion& action, const Motion& fetch_command, const Arm& arm_target);
  void ReadState();
  bool Touching() const;  // TIAGo++ is in contact with something
  void PlaceMarker(int mocap, const Point& at);

  const TaskSpec spec_;
  Simulation simulation_;
  const ModelIds ids_;
  const bool paper_reward_;
  const Frame frame_;
  WheelDrive drive_;
  double friction_ = 1;  // factor

  Situation now_;
  Arm arm_{}, arm_rate_{};
  LinkPoints points_;   // one control step old
  HandAxes hand_axes_;  // likewise
  ArmPattern pattern_;
  RandomStream targets_{0};
  Point fetch_target_;
  double target_yaw_ = 0;
  bool fetch_idle_ = false;
  bool collided_ = false;  // in this episode
  double cost_ = 0;
};

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options);

}  // namespace datacom::navigation

#endif  // DATACOM_COMMON_TASKS_NAVIGATION_TASK_H_
// SPDX-License-Identifier: Apache-2.0
