#include "common/tasks/air_hockey/task.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "common/tasks/air_hockey/arm.h"
#include "common/tasks/air_hockey/dynamics.h"
#include "common/tasks/register_task.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::air_hockey {
namespace {

// The arm of model.xml: the same masses, inertias and limits, without geometry.
constexpr char kArmXml[] = R"(
<mujoco model="arm">
  <compiler angle="radian" fusestatic="true"/>
  <size nstack="2000" njmax="8" nconmax="1"/>
  <default>
    <joint type="hinge" axis="0 0 1" limited="true"/>
  </default>
  <worldbody>
    <body name="link_1">
      <inertial pos="0.25 0 0" mass="3" diaginertia="0.064375 0.064375 0.00375"/>
      <joint range="-2.9670597283903604 2.9670597283903604"/>
      <body name="link_2" pos="0.55 0 0">
        <inertial pos="0.2 0 0" mass="2" diaginertia="0.0335 0.0335 0.003"/>
        <joint range="-1.8 1.8"/>
        <body name="link_3" pos="0.44 0 0">
          <inertial pos="0.2 0 0" mass="2" diaginertia="0.0335 0.0335 0.003"/>
          <joint range="-2.0943951023931953 2.0943951023931953"/>
          <body name="hand" pos="0.44 0 0">
            <inertial pos="0 0 0" mass="0.1" diaginertia="0.0008 0.0023 0.0023"/>
            <body name="mallet" pos="0 0 -0.15">
              <inertial pos="0 0 0" mass="0.1" diaginertia="0.0008 0.0023 0.0023"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>)";

}  // namespace

absl::StatusOr<InverseDynamics> InverseDynamics::Make() {
  static const auto* const compiled =
      new absl::StatusOr<MujocoModel>(CompileMujocoModel("air_hockey_inverse_dynamics", kArmXml));
  RETURN_IF_ERROR(compiled->status());
  ASSIGN_OR_RETURN(MujocoData data, MakeMujocoData(***compiled));
  return InverseDynamics(**compiled, std::move(data));
}

void InverseDynamics::Torque(const double* position, const double* velocity, const double* acceleration,
                             double* torque) {
  std::copy_n(position, kJoints, data_->qpos);
  std::copy_n(velocity, kJoints, data_->qvel);
  std::copy_n(acceleration, kJoints, data_->qacc);
  mj_inverse(model_.get(), data_.get());
  std::copy_n(data_->qfrc_inverse, kJoints, torque);
}

extern const char kModelXml[];
extern const char kTableXml[];  // common/tasks/hockey_table.xml

namespace {

constexpr int kSubsteps = 20;
constexpr double kFilterGain = 0.274;  // of the newest joint velocity, every millisecond
constexpr int kPuckJoint = kJoints;    // first of x, y, yaw

}  // namespace

AirHockey::AirHockey(TaskSpec spec, const Options& options, Simulation simulation, InverseDynamics inverse_dynamics,
                     int mallet_body)
    : SimulatedTask(std::move(spec), std::move(simulation)),
      options_(options),
      inverse_dynamics_(std::move(inverse_dynamics)),
      mallet_body_(mallet_body) {}

absl::Status AirHockey::ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) {
  ASSIGN_OR_RETURN(const PuckPlace puck, DrawPuck(spec_, options_.puck_y, init, stream));
  noise_ = stream->Child("air_hockey.mismatch");
  simulation_.Start([&puck](const mjModel& model, mjData* data) {
    std::copy_n(kStartPosition, kJoints, data->qpos);
    PlacePuck(puck, data->qpos + kPuckJoint);
    mj_fwdPosition(&model, data);
  });
  std::fill_n(filtered_, kJoints, 0.0);
  rally_.Start();
  cost_ = CostNow();
  Observe(observation);
  return absl::OkStatus();
}

bool AirHockey::Substep(const double* desired) {
  mjData* const data = simulation_.data();
  double acceleration[kJoints];
  LimitAcceleration(desired, filtered_, acceleration);
  const absl::Status torques =
      GuardMujoco([&] { inverse_dynamics_.Torque(data->qpos, filtered_, acceleration, data->ctrl); });
  if (!torques.ok() || !simulation_.Step(1)) return false;
  for (int i = 0; i < kJoints; ++i) filtered_[i] = kFilterGain * data->qvel[i] + (1 - kFilterGain) * filtered_[i];
  return true;
}

StepResult AirHockey::Step(const double* action, double* observation) {
  double noise[kJoints] = {};
  if (options_.mismatch_sigma > 0) {
    for (double& value : noise) value = options_.mismatch_sigma * noise_.Normal();
  }
  return StepWithNoise(action, noise, observation);
}

StepResult AirHockey::StepWithNoise(const double* action, const double* noise, double* observation) {
  double desired[kJoints];
  for (int i = 0; i < kJoints; ++i) {
    const double executed = action[i] + noise[i] - options_.mismatch_sigma * filtered_[i];
    desired[i] = executed * kAccelerationLimits[i];
  }
  StepResult result;
  for (int i = 0; i < kSubsteps && result.valid; ++i) result.valid = Substep(desired);
  Observe(observation);
  rally_.Score(PuckOf(observation), &result);
  result.cost = cost_ = CostNow();
  return result;
}

void AirHockey::Observe(double* observation) const {
  const mjData& data = *simulation_.data();
  ObservePuck(data.qpos + kPuckJoint, data.qvel + kPuckJoint, observation);
  std::copy_n(data.qpos, kJoints, observation + kJointPosition);
  std::copy_n(filtered_, kJoints, observation + kJointVelocity);
  const mjtNum* const position = data.xpos + 3 * mallet_body_;
  const mjtNum* const velocity = data.cvel + 6 * mallet_body_ + 3;  // after the angular part
  for (int i = 0; i < 2; ++i) {
    observation[kMalletPosition + i] = position[i] - data.qpos[kPuckJoint + i];
    observation[kMalletVelocity + i] = velocity[i] - data.qvel[kPuckJoint + i];
  }
}

double AirHockey::CostNow() const {
  const mjData& data = *simulation_.data();
  const mjtNum* const position = data.xpos + 3 * mallet_body_;
  const double mallet[2] = {position[0] + kBaseX, position[1]};
  return air_hockey::Cost(data.qpos, filtered_, mallet);
}

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options) {
  static const auto* const compiled =
      new absl::StatusOr<MujocoModel>(CompileMujocoModel("air_hockey", kModelXml, {{"hockey_table.xml", kTableXml}}));
  RETURN_IF_ERROR(compiled->status());
  const MujocoModel& model = **compiled;
  ASSIGN_OR_RETURN(TaskModel facts, MakeModel(options));
  ASSIGN_OR_RETURN(Simulation simulation, Simulation::Make(model));
  ASSIGN_OR_RETURN(InverseDynamics inverse_dynamics, InverseDynamics::Make());
  AirHockey::Options own;
  own.puck_y = options.puck_region() == "adjusted" ? kAdjustedPuckY : kOriginalPuckY;
  own.mismatch_sigma = options.mismatch_sigma();
  const int mallet = mj_name2id(model.get(), mjOBJ_BODY, "mallet");
  return Started(std::make_unique<AirHockey>(std::move(facts.spec), own, std::move(simulation),
                                             std::move(inverse_dynamics), mallet),
                 "air_hockey.first");
}

const RegisterTask kRegistered("air_hockey", &MakeTask);

}  // namespace datacom::air_hockey
// SPDX-License-Identifier: Apache-2.0
