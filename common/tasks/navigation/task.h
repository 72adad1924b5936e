// Navigation in MuJoCo (specification: common/tasks/navigation/README.md): TIAGo++ drives to a target in a room of 7 m
// by 5 m, in which a Fetch robot drives from one random target to the next and waves its arm. Touching Fetch or a wall
// ends the episode.
//
// What moves is simulated: TIAGo++ with three planar joints, Fetch with three and its four arm joints. Drives and
// servos say which acceleration they want, inverse dynamics turns it into forces on the joints, and MuJoCo integrates
// them together with whatever a contact adds. So without contact TIAGo++ follows its torque-limited wheels and the arm
// its first-order servos to rounding, and a collision pushes real masses. Arm joints written directly, or mocap
// links, would have put immovable geometry into the contact instead.
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

// Not thread-safe; shares the compiled model, owns its mjData. Steps allocate nothing and block nowhere. Actions are
// not clipped. Fetch's later targets come from a stream of their own below the reset's.
class Navigation : public Task {
 public:
  // Where the model keeps what the task looks for.
  struct Places {
    int tiago_body = 0;
    int target_mocap = 0, fetch_target_mocap = 0;
  };
  Navigation(TaskSpec spec, Simulation simulation, const Places& places, bool paper_reward, Frame frame);

  const TaskSpec& spec() const override { return spec_; }
  void Reset(RandomStream* stream, double* observation) override;
  // A named value takes the place of a drawn one; Fetch keeps its distance from where TIAGo++ then is.
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override;
  StepResult Step(const double* action, double* observation) override;
  double Cost() const override { return cost_; }
  bool Success() const override;  // at the target, and nothing was touched
  // Friction scales contacts, the grip of the wheels and Fetch's traction; the joints have no damping. Motors keep
  // their torque.
  void ScalePhysics(const PhysicsScale& scale) override;
  const Simulation* simulation() const override { return &simulation_; }

 private:
  void Start(const std::map<std::string, double>& init, RandomStream* stream, double* observation);
  // Lets `command` and `arm_target` act for one control step; false where the state means nothing any more.
  bool Simulate(const Motion& action, const Motion& fetch_command, const Arm& arm_target);
  void ReadState();
  bool Touching() const;  // is TIAGo++ in contact with anything?
  void PlaceMarker(int mocap, const Point& at);

  const TaskSpec spec_;
  Simulation simulation_;
  const Places places_;
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
