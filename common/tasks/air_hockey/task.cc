#include "common/tasks/air_hockey/task.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status.h"
#include "common/tasks/air_hockey/arm.h"
#include "common/tasks/air_hockey/constraints.h"
#include "common/tasks/air_hockey/dynamics.h"
#include "common/tasks/register_task.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::air_hockey {

extern const char kModelXml[];
extern const char kTableXml[];  // common/tasks/hockey_table.xml

namespace {

constexpr int kSubsteps = 20;
constexpr double kFilterGain = 0.274;  // of the newest joint velocity, every millisecond
constexpr int kPuckJoint = kJoints;    // first of x, y, yaw

PuckState PuckOf(const double* observation) {
  return {observation[kPuckPosition], observation[kPuckPosition + 1], observation[kPuckVelocity],
          observation[kPuckVelocity + 1]};
}

}  // namespace

AirHockey::AirHockey(TaskSpec spec, const Options& options, Simulation simulation, InverseDynamics inverse_dynamics,
                     int mallet_body)
    : spec_(std::move(spec)),
      options_(options),
      simulation_(std::move(simulation)),
      inverse_dynamics_(std::move(inverse_dynamics)),
      mallet_body_(mallet_body) {}

void AirHockey::Reset(RandomStream* stream, double* observation) {
  const PuckPlace puck = DrawPuck(options_.puck_y, stream);
  noise_ = stream->Child("air_hockey.mismatch");
  Start(puck, observation);
}

absl::Status AirHockey::ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) {
  PuckPlace puck = DrawPuck(options_.puck_y, stream);
  noise_ = stream->Child("air_hockey.mismatch");
  RETURN_IF_ERROR(SetPuck(spec_, init, &puck));
  Start(puck, observation);
  return absl::OkStatus();
}

void AirHockey::Start(const PuckPlace& puck, double* observation) {
  simulation_.Start([&puck](const mjModel& model, mjData* data) {
    std::copy_n(kStartPosition, kJoints, data->qpos);
    data->qpos[kPuckJoint] = puck.x;
    data->qpos[kPuckJoint + 1] = puck.y;
    data->qpos[kPuckJoint + 2] = puck.yaw;
    mj_fwdPosition(&model, data);
  });
  std::fill_n(filtered_, kJoints, 0.0);
  rally_.Start();
  cost_ = CostNow();
  Observe(observation);
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
  observation[kPuckPosition] = data.qpos[kPuckJoint] + kBaseX;
  observation[kPuckPosition + 1] = data.qpos[kPuckJoint + 1];
  observation[kPuckPosition + 2] = WrapAngle(data.qpos[kPuckJoint + 2]);
  std::copy_n(data.qvel + kPuckJoint, 3, observation + kPuckVelocity);
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
  auto task = std::make_unique<AirHockey>(std::move(facts.spec), own, std::move(simulation),
                                          std::move(inverse_dynamics), mj_name2id(model.get(), mjOBJ_BODY, "mallet"));
  RandomStream stream(StreamKey("air_hockey.first", {}));
  double observation[kObservation];
  task->Reset(&stream, observation);
  return std::unique_ptr<Task>(std::move(task));
}

const RegisterTask kRegistered("air_hockey", &MakeTask);

}  // namespace datacom::air_hockey
// SPDX-License-Identifier: Apache-2.0
