// Navigation in MuJoCo (specification: docs/navigation.md): TIAGo++ drives to a target in a room of 7 m
// by 5 m, in which a Fetch robot drives from one random target to the next and waves its arm. Touching Fetch or a wall
// ends the episode.
//
// All moving parts are simulated: TIAGo++ with three planar joints, Fetch with three and its four arm joints. Drives
// and servos command accelerations, inverse dynamics turns them into joint forces, and MuJoCo integrates these together
// with the contact forces. Without contact, TIAGo++ follows its torque-limited wheels, and the arm its first-order
// servos, to rounding; a collision pushes real masses. Writing the arm's joints directly, or mocap links, would instead
// put immovable geometry into the contact.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/navigation/dynamics.h"
#include "common/tasks/navigation/fetch.h"
#include "common/tasks/navigation/objective.h"
#include "common/tasks/navigation/observation.h"
#include "common/tasks/navigation/wheel_drive.h"
#include "common/tasks/register_task.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::navigation {

extern const char kModelXml[];

namespace {

// The model's joints in order; each has one position and one velocity.
constexpr int kTiago = 0, kFetch = 3, kArm = 6, kJoints = 10;
constexpr const char* kJointNames[kJoints] = {"tiago_x",   "tiago_y",      "tiago_yaw",     "fetch_x",    "fetch_y",
                                              "fetch_yaw", "shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex"};
constexpr double kStartShare = 0.75;      // share of the room in which robots start and targets lie
constexpr double kStartDistance = 0.8;    // m, between the robots
constexpr double kGrip = 0.5 * kGravity;  // m/s^2 sideways at which wheels slip

// Start values: the named one, otherwise a draw. Named values are drawn too, so that the later draws do not change.
class StartValues {
 public:
  StartValues(const std::map<std::string, double>& named, RandomStream* stream) : named_(named), stream_(stream) {}
  bool Named(const char* key) const { return named_.count(key) > 0; }
  double Uniform(const char* key, double limit) {
    const double drawn = stream_->Uniform(-limit, limit);
    const auto it = named_.find(key);
    return it == named_.end() ? drawn : it->second;
  }
  double X(const char* key) { return Uniform(key, kStartShare * kRoomX); }
  double Y(const char* key) { return Uniform(key, kStartShare * kRoomY); }

 private:
  const std::map<std::string, double>& named_;
  RandomStream* const stream_;
};

Motion MotionOf(const PlanarState& robot) { return {Turned(robot, {robot.vx, robot.vy}).x, robot.yaw_rate}; }

// The acceleration [3] of a wheeled robot that changes its motion by `change` within a control step; its wheels remove
// as much sideways speed as their grip allows.
void WheeledAcceleration(const PlanarState& robot, const Motion& change, double grip, double* acceleration) {
  const double cosine = std::cos(robot.yaw), sine = std::sin(robot.yaw);
  const double ahead = change.v / kControlDt;
  const double left = ClampTo(-Turned(robot, {robot.vx, robot.vy}).y / kControlDt, grip);
  acceleration[0] = cosine * ahead - sine * left;
  acceleration[1] = sine * ahead + cosine * left;
  acceleration[2] = change.omega / kControlDt;
}

PlanarState ReadPlanar(const mjData& data, int first) {
  return {data.qpos[first], data.qpos[first + 1], data.qpos[first + 2],
          data.qvel[first], data.qvel[first + 1], data.qvel[first + 2]};
}

DriveInertia TiagoInertia(const mjModel& model, int body) {
  const double left = model.body_ipos[3 * body + 1];
  return {model.body_mass[body], left, model.body_inertia[3 * body + 2] + model.body_mass[body] * left * left};
}

// Not thread-safe; shares the compiled model, owns its mjData. Steps neither allocate nor block. Actions are not
// clipped. Fetch's later targets come from a child of the reset's stream.
class Navigation : public SimulatedTask {
 public:
  // Bodies in the compiled model.
  struct ModelIds {
    int tiago_body = 0;
    int target_mocap = 0, fetch_target_mocap = 0;
  };

  Navigation(TaskSpec spec, Simulation simulation, const ModelIds& ids, bool paper_reward, Frame frame)
      : SimulatedTask(std::move(spec), std::move(simulation)),
        ids_(ids),
        paper_reward_(paper_reward),
        frame_(frame),
        drive_(TiagoInertia(simulation_.model(), ids.tiago_body)) {}

  // Named values replace drawn ones; a drawn Fetch position keeps its distance from TIAGo++'s.
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override {
    RETURN_IF_ERROR(CheckStartValues(spec_, init));
    const auto idle = init.find("fetch_idle");
    if (idle != init.end() && idle->second != 0 && idle->second != 1)
      return absl::InvalidArgumentError(absl::StrCat("navigation start value fetch_idle = ", idle->second));
    StartValues values(init, stream);
    now_ = Situation();
    now_.tiago.x = values.X("tiago_x");
    now_.tiago.y = values.Y("tiago_y");
    now_.tiago.yaw = values.Uniform("tiago_yaw", M_PI);
    const bool given = values.Named("fetch_x") && values.Named("fetch_y");
    do {
      now_.fetch.x = values.X("fetch_x");
      now_.fetch.y = values.Y("fetch_y");
    } while (!given && Distance(now_.tiago, {now_.fetch.x, now_.fetch.y}) <= kStartDistance);
    now_.fetch.yaw = values.Uniform("fetch_yaw", M_PI);
    fetch_target_.x = values.X("fetch_target_x");
    fetch_target_.y = values.Y("fetch_target_y");
    now_.target.x = values.X("target_x");
    now_.target.y = values.Y("target_y");
    target_yaw_ = stream->Uniform(-M_PI, M_PI);
    targets_ = stream->Child("navigation.targets");
    fetch_idle_ = idle != init.end() && idle->second == 1;

    arm_ = kTuckedArm;
    pattern_.Restart();
    collided_ = false;
    drive_ = WheelDrive(TiagoInertia(simulation_.model(), ids_.tiago_body));
    simulation_.Start([this](const mjModel& model, mjData* data) {
      for (const auto& [first, robot] : {std::pair{kTiago, &now_.tiago}, std::pair{kFetch, &now_.fetch}}) {
        data->qpos[first] = robot->x;
        data->qpos[first + 1] = robot->y;
        data->qpos[first + 2] = robot->yaw;
      }
      std::copy(arm_.begin(), arm_.end(), data->qpos + kArm);
      PlaceMarker(ids_.target_mocap, now_.target);
      PlaceMarker(ids_.fetch_target_mocap, fetch_target_);
      mj_step1(&model, data);
    });
    points_ = FetchLinkPoints(now_.fetch, arm_);
    hand_axes_ = FetchHandAxes(now_.fetch, arm_);
    ReadState();
    cost_ = Costs(now_.tiago, now_.fetch, points_).Largest();
    Observe(now_, frame_, observation);
    return absl::OkStatus();
  }

  StepResult Step(const double* action, double* observation) override {
    const Motion motion = {action[0], action[1]};
    const Motion fetch_command = fetch_idle_ ? Motion() : FetchCommand(now_.fetch, fetch_target_);
    if (!fetch_idle_ && FetchArrived(now_.fetch, fetch_target_)) {
      fetch_target_.x = targets_.Uniform(-kStartShare * kRoomX, kStartShare * kRoomX);
      fetch_target_.y = targets_.Uniform(-kStartShare * kRoomY, kStartShare * kRoomY);
      PlaceMarker(ids_.fetch_target_mocap, fetch_target_);
    }
    points_ = FetchLinkPoints(now_.fetch, arm_);
    hand_axes_ = FetchHandAxes(now_.fetch, arm_);
    StepResult result;
    result.valid = Simulate(motion, fetch_command, fetch_idle_ ? kTuckedArm : pattern_.Next());
    ReadState();
    result.absorbing = Touching();
    result.reward = paper_reward_ ? PaperReward(now_.tiago, now_.target, target_yaw_, motion)
                                  : CodeReward(now_.tiago, now_.target, motion, now_.action, result.absorbing);
    result.cost = cost_ = Costs(now_.tiago, now_.fetch, points_).Largest();
    collided_ |= result.absorbing;
    now_.action = motion;
    Observe(now_, frame_, observation);
    return result;
  }

  // At the target, without a collision in this episode.
  bool Success() const override { return !collided_ && Distance(now_.tiago, now_.target) <= kGoalDistance; }

  // Friction scales contacts, the grip of the wheels and Fetch's traction; the joints have no damping. Motors keep
  // their torque.
  void ScalePhysics(const PhysicsScale& scale) override {
    simulation_.Scale(scale);
    friction_ = scale.friction;
  }

 private:
  // Applies the commands and `arm_target` for one control step; false when the state has become invalid.
  bool Simulate(const Motion& action, const Motion& fetch_command, const Arm& arm_target) {
    double acceleration[kJoints];
    const double grip = friction_ * kGrip;
    WheeledAcceleration(now_.tiago, drive_.Change(MotionOf(now_.tiago), action), grip, acceleration + kTiago);
    WheeledAcceleration(now_.fetch, FetchChange(MotionOf(now_.fetch), fetch_command, friction_), grip,
                        acceleration + kFetch);
    for (int i = 0; i < kArmJoints; ++i) {
      const double rate = kArmGain * (arm_target[i] - arm_[i]) / kControlDt;
      acceleration[kArm + i] = (rate - arm_rate_[i]) / kControlDt;
    }
    // The first half of this step (positions to contacts) already ran at the reset or at the end of the previous step.
    // Run last, it gives the contacts of the state that the step reaches, at no extra cost.
    return simulation_.Run([&acceleration](const mjModel& model, mjData* data) {
      mj_mulM(&model, data, data->qfrc_applied, acceleration);
      mju_addTo(data->qfrc_applied, data->qfrc_bias, kJoints);
      mj_step2(&model, data);
      mj_step1(&model, data);
    });
  }

  void ReadState() {
    const mjData& data = *simulation_.data();
    now_.tiago = ReadPlanar(data, kTiago);
    now_.fetch = ReadPlanar(data, kFetch);
    std::copy(data.qpos + kArm, data.qpos + kJoints, arm_.begin());
    std::copy(data.qvel + kArm, data.qvel + kJoints, arm_rate_.begin());
    now_.hand = points_[kHand];
    now_.hand_velocity = FetchHandVelocity(now_.fetch, arm_, arm_rate_, hand_axes_);
  }

  // TIAGo++ is in contact with something.
  bool Touching() const {
    const mjModel& model = simulation_.model();
    const mjData& data = *simulation_.data();
    for (int i = 0; i < data.ncon; ++i) {
      if (model.geom_bodyid[data.contact[i].geom1] == ids_.tiago_body ||
          model.geom_bodyid[data.contact[i].geom2] == ids_.tiago_body) {
        return true;
      }
    }
    return false;
  }

  void PlaceMarker(int mocap, const Point& at) {
    simulation_.data()->mocap_pos[3 * mocap] = at.x;
    simulation_.data()->mocap_pos[3 * mocap + 1] = at.y;
  }

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
};

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options) {
  static const auto* const compiled = new absl::StatusOr<MujocoModel>(CompileMujocoModel("navigation", kModelXml));
  RETURN_IF_ERROR(compiled->status());
  const mjModel& model = ***compiled;
  for (int i = 0; i < kJoints; ++i) {
    const int joint = mj_name2id(&model, mjOBJ_JOINT, kJointNames[i]);
    if (model.nv != kJoints || joint < 0 || model.jnt_dofadr[joint] != i)
      return absl::InternalError(absl::StrCat("model navigation: joint ", kJointNames[i], " is not number ", i));
  }
  const int tiago = mj_name2id(&model, mjOBJ_BODY, "tiago");
  const int target = mj_name2id(&model, mjOBJ_BODY, "target");
  const int fetch_target = mj_name2id(&model, mjOBJ_BODY, "fetch_target");
  if (tiago < 0 || target < 0 || fetch_target < 0)
    return absl::InternalError("model navigation: no body tiago, target or fetch_target");
  ASSIGN_OR_RETURN(TaskModel facts, MakeModel(options));
  ASSIGN_OR_RETURN(Simulation simulation, Simulation::Make(**compiled));
  const Navigation::ModelIds ids = {tiago, model.body_mocapid[target], model.body_mocapid[fetch_target]};
  return Started(std::make_unique<Navigation>(std::move(facts.spec), std::move(simulation), ids,
                                              options.reward() == "paper", FrameOf(options)),
                 "navigation.made");
}

const RegisterTask kRegistered("navigation", &MakeTask);

}  // namespace
}  // namespace datacom::navigation
// SPDX-License-Identifier: Apache-2.0
