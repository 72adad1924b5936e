// The simulated side of a task that is a text file (proto/datacom/v1/task.proto).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "common/tasks/text/mujoco_known_columns.h"
#include "common/tasks/text/mujoco_terms.h"
#include "common/tasks/text/observed.h"
#include "common/tasks/text/row_model.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::text {
namespace {

// s since the start, so that it compares with a decimal number as on paper: 3 * 0.1 would be above 0.3. A time within
// rounding errors of a whole number of nanoseconds is the number nearest to that.
double TimeOf(uint32_t step, double control_dt) {
  constexpr double kParts = 1e9, kRounding = 1e-12;
  const double time = step * control_dt, decimal = std::round(time * kParts) / kParts;
  return std::abs(decimal - time) <= kRounding * time ? decimal : time;
}

// One environment. Not thread-safe; owns its simulation state; environments of the same task share the compiled model.
// Steps neither block nor allocate.
class TextTask : public SimulatedTask {
 public:
  static absl::StatusOr<std::unique_ptr<TextTask>> Make(std::shared_ptr<const CompiledTask> compiled, TaskSpec spec,
                                                        const RowLayout& layout);

  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override;
  StepResult Step(const double* action, double* observation) override;
  bool Success() const override {  // a NaN is none
    return objective_->success.has_value() && std::abs(objective_->success->Value()) > 0;
  }
  void ScalePhysics(const PhysicsScale& scale) override;

 private:
  TextTask(std::shared_ptr<const CompiledTask> compiled, TaskSpec spec, const RowLayout& layout, Simulation simulation);
  absl::Status Fill();  // makes the parts that may fail
  // Fills signals, costs and the observation; false when MuJoCo fails. dt: since the last call, 0 at the start.
  bool Observe(double dt, double* observation);
  void KeepNumbers();            // signals and action, for the next step as its previous values
  bool WriteModel(double* out);  // f and G; false when MuJoCo fails

  const std::shared_ptr<const CompiledTask> compiled_;
  const RowLayout layout_;
  std::optional<Terms> terms_;
  std::optional<Differences> differences_;
  std::optional<KnownColumns> known_;
  Motions motions_;
  Pushes pushes_;
  ElementFactors factors_;
  PhysicsScale scale_;
  std::vector<std::string> command_streams_;
  std::vector<double> values_;  // of CompiledTask::names; the objective reads them
  std::optional<Objective> objective_;
  std::optional<Observed> observed_;
  std::vector<double> cost_values_, x_before_;
  uint32_t step_ = 0;  // of the episode
};

absl::StatusOr<std::unique_ptr<TextTask>> TextTask::Make(std::shared_ptr<const CompiledTask> compiled, TaskSpec spec,
                                                         const RowLayout& layout) {
  ASSIGN_OR_RETURN(Simulation simulation, Simulation::Make(compiled->model));
  std::unique_ptr<TextTask> task(new TextTask(std::move(compiled), std::move(spec), layout, std::move(simulation)));
  RETURN_IF_ERROR(task->Fill());
  std::vector<double> observation(task->spec_.obs_dim);
  task->Reset(nullptr, observation.data());
  return task;
}

TextTask::TextTask(std::shared_ptr<const CompiledTask> compiled, TaskSpec spec, const RowLayout& layout,
                   Simulation simulation)
    : SimulatedTask(std::move(spec), std::move(simulation)),
      compiled_(std::move(compiled)),
      layout_(layout),
      values_(compiled_->initial),
      cost_values_(compiled_->definition.cost_size()),
      x_before_(layout.x) {
  for (const v1::Command& command : compiled_->definition.command()) {
    command_streams_.push_back("task." + CommandKey(command));
  }
}

absl::Status TextTask::Fill() {
  const CompiledTask& task = *compiled_;
  const v1::ConstraintState& state = task.definition.constraint_state();
  ASSIGN_OR_RETURN(MujocoData own, MakeMujocoData(*task.unconstrained));
  terms_.emplace(task.unconstrained, std::move(own), task.joints, *task.actuation, state);
  if (task.actuation->finite_difference()) {
    ASSIGN_OR_RETURN(own, MakeMujocoData(*task.model));
    differences_.emplace(task.model, std::move(own), task.joints, *task.actuation, state.actuator_gain());
  }
  if (!task.known.geometry.empty()) {
    ASSIGN_OR_RETURN(own, MakeMujocoData(*task.unconstrained));
    known_.emplace(task.unconstrained, std::move(own), task.known.geometry, task.joints, !layout_.first_order);
  }
  ASSIGN_OR_RETURN(motions_, Motions::Make(*task.model, task.definition));
  ASSIGN_OR_RETURN(pushes_, Pushes::Make(*task.model, task.definition, spec_.control_dt));
  ASSIGN_OR_RETURN(factors_, ElementFactors::Make(*task.model, task.definition));
  ASSIGN_OR_RETURN(objective_, Objective::Make(task, values_.data()));
  ASSIGN_OR_RETURN(observed_, Observed::Make(task.definition, task.observation.begins(), task.names, values_.data()));
  return absl::OkStatus();
}

void TextTask::ScalePhysics(const PhysicsScale& scale) {
  scale_ = scale;
  if (factors_.empty()) simulation_.Scale(scale);  // otherwise each start does
}

absl::Status TextTask::ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) {
  RETURN_IF_ERROR(CheckStartValues(spec_, init));
  const CompiledTask& task = *compiled_;
  std::fill_n(values_.begin() + task.action_at(), layout_.action, 0.0);
  step_ = 0;
  values_[task.time_at()] = 0;
  for (int i = 0; i < task.definition.command_size(); ++i) {
    const v1::Command& command = task.definition.command(i);
    double& value = values_[task.command_at() + i];
    value = stream == nullptr ? (command.low() + command.high()) / 2
                              : stream->Child(command_streams_[i]).Uniform(command.low(), command.high());
    if (const auto given = init.find(CommandKey(command)); given != init.end()) value = given->second;
  }
  if (!factors_.empty()) simulation_.Scale(scale_, &factors_.Draw(stream));
  pushes_.Begin(stream);
  simulation_.Start([&](const mjModel& model, mjData* data) {
    task.start->Apply(model, stream, data);
    for (const auto& [key, value] : init) {
      if (const auto joint = task.start->keys().find(key); joint != task.start->keys().end())
        data->qpos[joint->second] = value;
    }
    motions_.Begin(stream, *data);
    task.actuation->Begin(model, data);
    if (task.external_forces) mj_forward(&model, data);  // the forces of the start
  });
  Observe(0, observation);
  return absl::OkStatus();
}

StepResult TextTask::Step(const double* action, double* observation) {
  const CompiledTask& task = *compiled_;
  double* const clipped = &values_[task.action_at()];
  KeepNumbers();
  StepResult result;
  result.valid = simulation_.Run([&](const mjModel& model, mjData* data) {
    if (pushes_.Apply(data)) task.actuation->Begin(model, data);
    task.actuation->Apply(action, clipped, data);
    motions_.Advance(spec_.control_dt, data);
    task.actuation->Advance(model, clipped, data);
  });
  values_[task.time_at()] = TimeOf(++step_, spec_.control_dt);
  result.valid &= Observe(spec_.control_dt, observation);
  result.reward = objective_->Reward();
  result.cost = cost_;
  result.absorbing = objective_->absorbing.has_value() && objective_->absorbing->Value() != 0;
  result.truncated = !result.absorbing && objective_->truncated.has_value() && objective_->truncated->Value() != 0;
  return result;
}

void TextTask::KeepNumbers() {
  std::copy_n(values_.begin(), compiled_->time_at(), values_.begin() + compiled_->before_at());
}

bool TextTask::Observe(double dt, double* observation) {
  const CompiledTask& task = *compiled_;
  double* const x = observation + layout_.x_at;
  const bool valid = simulation_.Run([&](const mjModel& model, mjData* data) {
    if (task.external_forces) mj_rnePostConstraint(&model, data);
    task.observation.Read(model, *data, values_.data());
    task.extra.Read(model, *data, values_.data() + task.observation.size());
    terms_->WriteState(model, *data, observation + layout_.q_at);
    task.uncontrolled.Read(model, *data, x);
    task.uncontrolled.Rates(model, *data, x_before_.data(), x, dt, observation + layout_.x_dot_at);
  });
  if (dt == 0) KeepNumbers();
  observed_->Write(/*start=*/dt == 0, observation);
  std::copy_n(x, layout_.x, x_before_.begin());
  bool written = valid;
  if (valid && layout_.evaluated) written = WriteModel(observation + layout_.drift_at);
  if (valid && known_) written &= known_->Write(*simulation_.data(), dt, observation + layout_.known_at);
  for (size_t i = 0; i < cost_values_.size(); ++i) {
    cost_values_[i] = objective_->costs[i].Value();
    const double weighted = objective_->weights[i] * cost_values_[i];
    if (i == 0 || (!std::isnan(cost_) && !(weighted <= cost_))) cost_ = weighted;
  }
  std::copy_n(cost_values_.begin(), layout_.costs, observation + layout_.costs_at);
  for (int i = 0; i < layout_.logs; ++i) observation[layout_.logs_at + i] = objective_->logs[i].Value();
  return written;
}

bool TextTask::WriteModel(double* out) {
  if (differences_.has_value()) return differences_->Write(*simulation_.data(), out);
  const bool fresh = compiled_->actuation->keeps_fresh() && &simulation_.model() == compiled_->model.get();
  return terms_->Write(simulation_.model(), simulation_.data(), fresh, out);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options) {
  ASSIGN_OR_RETURN(TaskModel facts, MakeModel(options));
  ASSIGN_OR_RETURN(std::shared_ptr<const CompiledTask> compiled,
                   CompiledTask::Shared(options.GetExtension(v1::text_task)));
  const RowLayout layout = RowLayout::Of(options.GetExtension(v1::text_task));
  const auto& named = options.GetExtension(v1::text_task).resolved().observation();
  std::vector<double> scratch = compiled->initial;
  ASSIGN_OR_RETURN(const Observed observed, Observed::Make(compiled->definition, compiled->observation.begins(),
                                                           compiled->names, scratch.data()));
  const bool same = std::equal(named.begin(), named.end(), observed.names().begin(), observed.names().end()) &&
                    layout.action == static_cast<int>(compiled->actuation->channels().size()) &&
                    layout.velocities == static_cast<int>(compiled->joints.dofs.size()) &&
                    layout.x == compiled->uncontrolled.size() &&
                    layout.known == static_cast<int>(compiled->known.geometry.size());
  if (!same) {
    return absl::FailedPreconditionError(
        absl::StrCat("task ", facts.spec.name,
                     ": this MuJoCo compiles the model to another observation or action "
                     "than the MuJoCo that began the run"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<TextTask> task, TextTask::Make(std::move(compiled), std::move(facts.spec), layout));
  return std::unique_ptr<Task>(std::move(task));
}

}  // namespace datacom::text
// SPDX-License-Identifier: Apache-2.0
