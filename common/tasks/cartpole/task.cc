#include "common/tasks/cartpole/task.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/tasks/cartpole/dynamics.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom::cartpole {

extern const char kModelXml[];

namespace {

constexpr double kStartX = -1.0;           // m
constexpr int kSubsteps = 2;               // of 1/240 s
constexpr double kRewardDistance = 4.0;    // m at which the reward has fallen to 0
constexpr double kSuccessDistance = 0.25;  // m
constexpr double kSafeAngle = 1.5707;      // rad; the reference's literal, not pi / 2

}  // namespace

CartPole::CartPole(TaskSpec spec, MujocoModel model, MujocoData data, int tip_site, int goal_site)
    : spec_(std::move(spec)),
      model_(std::move(model)),
      data_(std::move(data)),
      tip_site_(tip_site),
      goal_site_(goal_site) {}

void CartPole::Reset(RandomStream* /*stream*/, double* observation) { Start(kStartX, 0.0, observation); }

absl::Status CartPole::ResetTo(const std::map<std::string, double>& init, RandomStream* /*stream*/,
                               double* observation) {
  double x = kStartX, theta = 0;
  for (const auto& [key, value] : init) {
    if (key != "x" && key != "theta") {
      return absl::InvalidArgumentError(
          absl::StrCat("cartpole has no start value \"", key, "\"; there are: ", absl::StrJoin(spec_.init_keys, ", ")));
    }
    if (!std::isfinite(value))
      return absl::InvalidArgumentError(absl::StrCat("cartpole start value ", key, " = ", value));
    (key == "x" ? x : theta) = value;
  }
  Start(x, theta, observation);
  return absl::OkStatus();
}

void CartPole::Start(double x, double theta, double* observation) {
  mj_resetData(model_.get(), data_.get());
  data_->qpos[0] = x;
  data_->qpos[1] = theta;
  mj_kinematics(model_.get(), data_.get());  // Success and renderers see the start, not the last episode
  Observe(observation);
}

StepResult CartPole::Step(const double* action, double* observation) {
  StepResult result;
  // Written as comparisons so that a NaN reaches the simulator, which refuses it.
  data_->ctrl[0] = action[0] < -1.0 ? -1.0 : action[0] > 1.0 ? 1.0 : action[0];
  result.valid = StepMujoco(*model_, kSubsteps, data_.get());
  Observe(observation);
  result.reward = std::clamp(1.0 - TipDistance() / kRewardDistance, 0.0, 1.0);
  result.cost = Cost();
  return result;
}

void CartPole::Observe(double* observation) const {
  observation[0] = data_->qpos[0];
  observation[1] = std::sin(data_->qpos[1]);
  observation[2] = std::cos(data_->qpos[1]);
  observation[3] = data_->qvel[0];
  observation[4] = data_->qvel[1];
}

double CartPole::TipDistance() const {
  return mju_dist3(data_->site_xpos + 3 * tip_site_, data_->site_xpos + 3 * goal_site_);
}

double CartPole::Cost() const {
  return std::abs(std::atan2(std::sin(data_->qpos[1]), std::cos(data_->qpos[1]))) / kSafeAngle - 1.0;
}

bool CartPole::Success() const { return TipDistance() <= kSuccessDistance; }

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options) {
  static const auto* const compiled = new absl::StatusOr<MujocoModel>(CompileMujocoModel("cartpole", kModelXml));
  RETURN_IF_ERROR(compiled->status());
  const MujocoModel& model = **compiled;
  ASSIGN_OR_RETURN(TaskModel facts, MakeModel(options));
  ASSIGN_OR_RETURN(MujocoData data, MakeMujocoData(*model));
  const int tip = mj_name2id(model.get(), mjOBJ_SITE, "pole_tip");
  const int goal = mj_name2id(model.get(), mjOBJ_SITE, "goal");
  if (tip < 0 || goal < 0) return absl::InternalError("model cartpole: no site pole_tip or goal");
  auto task = std::make_unique<CartPole>(std::move(facts.spec), model, std::move(data), tip, goal);
  double observation[5];
  task->Reset(nullptr, observation);
  return std::unique_ptr<Task>(std::move(task));
}

}  // namespace datacom::cartpole
