// Air hockey with seven joints in MuJoCo (specification: docs/air_hockey.md). A control step is 20
// physics steps of 1 ms, each with the torques that give the commanded accelerations.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/base/random.h"
#include "common/base/status.h"
#include "common/tasks/air_hockey_7dof/arm.h"
#include "common/tasks/air_hockey_7dof/dynamics.h"
#include "common/tasks/hockey_rules.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/register_task.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::air_hockey {
extern const char kTableXml[];  // common/tasks/hockey_table.xml
}

namespace datacom::air_hockey_7dof {

extern const char kModelXml[];

namespace {

constexpr int kSubsteps = 20;
constexpr int kPuckJoint = kJoints;  // first of x, y, yaw

struct Models {
  MujocoModel whole;
  MujocoModel arm;  // the same without contacts
};

absl::StatusOr<Models> CompileModels() {
  Models models;
  ASSIGN_OR_RETURN(models.whole,
                   CompileMujocoModel("air_hockey_7dof", kModelXml, {{"hockey_table.xml", air_hockey::kTableXml}}));
  mjModel* const arm = mj_copyModel(nullptr, models.whole.get());
  models.arm = MujocoModel(arm, &mj_deleteModel);
  arm->opt.disableflags |= mjDSBL_CONTACT;
  return models;
}

// Not thread-safe; shares the compiled models, owns its data. Steps neither allocate nor block.
class AirHockey7 : public SimulatedTask {
 public:
  // The puck starts within |y| <= puck_y. `arm` is the nominal model without contacts, for inverse dynamics.
  AirHockey7(TaskSpec spec, double puck_y, Simulation simulation, MujocoModel arm, MujocoData arm_data)
      : SimulatedTask(std::move(spec), std::move(simulation)),
        puck_y_(puck_y),
        arm_(std::move(arm)),
        arm_data_(std::move(arm_data)) {}

  // Values that `init` does not name are drawn; table frame.
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override {
    ASSIGN_OR_RETURN(const air_hockey::PuckPlace puck, air_hockey::DrawPuck(spec_, puck_y_, init, stream));
    simulation_.Start([&puck](const mjModel& model, mjData* data) {
      std::copy_n(kStartPosition, kJoints, data->qpos);
      air_hockey::PlacePuck(puck, data->qpos + kPuckJoint);
      mj_fwdPosition(&model, data);
    });
    rally_.Start();
    Observe(observation);
    return absl::OkStatus();
  }

  // The action is clipped to [-1, 1].
  StepResult Step(const double* action, double* observation) override {
    double acceleration[kJoints];
    for (int i = 0; i < kJoints; ++i) {
      const double executed = action[i] < -1 ? -1 : action[i] > 1 ? 1 : action[i];  // passes a NaN on
      acceleration[i] = executed * kAccelerationShare * kVelocityLimits[i];
    }
    StepResult result;
    for (int i = 0; i < kSubsteps && result.valid; ++i) result.valid = Substep(acceleration);
    Observe(observation);
    rally_.Score(air_hockey::PuckOf(observation), &result);
    result.cost = cost_;
    return result;
  }

  bool Success() const override { return rally_.ending() == air_hockey::Ending::kGoal; }

 private:
  bool Substep(const double* acceleration) {
    mjData* const data = simulation_.data();
    const absl::Status torques = GuardMujoco([&] {
      std::copy_n(data->qpos, arm_->nq, arm_data_->qpos);
      std::copy_n(data->qvel, arm_->nv, arm_data_->qvel);
      std::fill_n(arm_data_->qacc, arm_->nv, 0.0);
      std::copy_n(acceleration, kJoints, arm_data_->qacc);
      mj_inverse(arm_.get(), arm_data_.get());
      std::copy_n(arm_data_->qfrc_inverse, kJoints, data->ctrl);
    });
    return torques.ok() && simulation_.Step(1);
  }

  // Also sets the cost, and the place of the disc that films show: it hangs upright from the tool, as on a free joint.
  void Observe(double* observation) {
    const mjData& data = *simulation_.data();
    air_hockey::ObservePuck(data.qpos + kPuckJoint, data.qvel + kPuckJoint, observation);
    std::copy_n(data.qpos, kJoints, observation + kJointPosition);
    std::copy_n(data.qvel, kJoints, observation + kJointVelocity);
    ObserveMallet(observation);
    cost_ = air_hockey_7dof::Cost(data.qpos, data.qvel);
    mjtNum* const disc = simulation_.data()->mocap_pos;
    disc[0] = data.qpos[kPuckJoint] + observation[kMalletPosition];
    disc[1] = data.qpos[kPuckJoint + 1] + observation[kMalletPosition + 1];
    disc[2] = observation[kMalletPosition + 2];
  }

  const double puck_y_;
  MujocoModel arm_;
  MujocoData arm_data_;
  air_hockey::Rally rally_;
};

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options) {
  static const auto* const compiled = new absl::StatusOr<Models>(CompileModels());
  RETURN_IF_ERROR(compiled->status());
  ASSIGN_OR_RETURN(TaskModel facts, MakeModel(options));
  ASSIGN_OR_RETURN(Simulation simulation, Simulation::Make((*compiled)->whole));
  ASSIGN_OR_RETURN(MujocoData arm_data, MakeMujocoData(*(*compiled)->arm));
  const double puck_y = options.puck_region() == "adjusted" ? air_hockey::kAdjustedPuckY : air_hockey::kOriginalPuckY;
  return Started(std::make_unique<AirHockey7>(std::move(facts.spec), puck_y, std::move(simulation), (*compiled)->arm,
                                              std::move(arm_data)),
                 "air_hockey_7dof.first");
}

const RegisterTask kRegistered("air_hockey_7dof", &MakeTask);

}  // namespace
}  // namespace datacom::air_hockey_7dof
// SPDX-License-Identifier: Apache-2.0
