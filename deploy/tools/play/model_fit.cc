#include "deploy/tools/play/model_fit.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "common/tasks/text/row_model.h"
#include "datacom/v1/task.pb.h"
#include "mujoco/mujoco.h"

namespace datacom::tools {
namespace {

// What acts on q in one time step of the model.
struct Acting {
  bool contact = false, limit = false;
  int equalities = 0, friction_losses = 0;
};

class Player {
 public:
  Player(TaskModel model, std::unique_ptr<Task> task, std::shared_ptr<const text::CompiledTask> compiled,
         const text::RowLayout& layout, MujocoData copy, const FitPlay& play)
      : model_(std::move(model)),
        task_(std::move(task)),
        compiled_(std::move(compiled)),
        layout_(layout),
        copy_(std::move(copy)),
        play_(play) {
    const ControlAffineDims dims = model_.dynamics->dims();
    observation_.resize(dims.obs), action_.resize(dims.action), clipped_.resize(dims.action);
    q_.resize(dims.q), after_.resize(dims.q), f_.resize(dims.q), G_.resize(dims.q * dims.action);
    predicted_.resize(dims.q);
    driven_.assign(dims.q, false);
    if (copy_ != nullptr) MarkBodies();
  }

  absl::StatusOr<ModelFit> Run() {
    RETURN_IF_ERROR(Play());
    if (changes_.empty()) {
      return absl::InternalError(absl::StrCat("task ", model_.spec.name, ": no valid step was played"));
    }
    ModelFit fit;
    fit.steps = changes_.size();
    std::vector<int> numbers;
    const int count = static_cast<int>(q_.size());
    if (compiled_ != nullptr) {
      for (int i = layout_.driven_at(); i < count; ++i) numbers.push_back(i);
      fit.positions = layout_.first_order;
    } else {
      for (int i = 0; i < count; ++i) {
        if (driven_[i]) numbers.push_back(i);
      }
      fit.positions = std::any_of(numbers.begin(), numbers.end(), [count](int i) { return i < count / 2; });
    }
    fit.control_step = Median(numbers, changes_);
    if (!one_steps_.empty()) fit.one_step = Median(numbers, one_steps_);
    fit.contacts = contacts_ / static_cast<double>(fit.steps);
    fit.limits = limits_ / static_cast<double>(fit.steps);
    fit.equalities = equalities_, fit.friction_losses = friction_losses_;
    return fit;
  }

 private:
  // A prediction beside what happened, [q] each.
  struct Pair {
    std::vector<double> predicted, happened;
  };

  absl::Status Play() {
    const double began = ProcessorSeconds();
    for (uint64_t episode = 0, tries = 0; tries < play_.steps; ++episode) {
      RandomStream stream(StreamKey("model_fit.reset", {play_.seed, episode}));
      RandomStream actions(StreamKey("model_fit.actions", {play_.seed, episode}));
      task_->Reset(&stream, observation_.data());
      uint64_t held = 0;
      for (int t = 0; t < model_.spec.horizon && tries < play_.steps; ++t) {
        if (Stop::Process().requested()) return absl::CancelledError("stopping was requested");
        if (ProcessorSeconds() - began > play_.seconds) return absl::OkStatus();
        ++tries;
        if (held == 0) {
          for (size_t i = 0; i < action_.size(); ++i) {
            action_[i] = actions.Uniform(model_.spec.action_low[i], model_.spec.action_high[i]);
          }
          held = 1 + actions.Below(kMostHeld);
        }
        --held;
        if (!Step()) break;
      }
    }
    return absl::OkStatus();
  }

  // False when the episode ends.
  bool Step() {
    model_.dynamics->Evaluate(observation_.data(), {q_.data(), nullptr, nullptr, f_.data(), G_.data()});
    Predict();
    const Acting acting = Look();
    const StepResult result = task_->Step(action_.data(), observation_.data());
    if (!result.valid) return false;
    model_.dynamics->Evaluate(observation_.data(), {after_.data(), nullptr, nullptr, nullptr, nullptr});
    Pair pair{predicted_, after_};
    for (size_t i = 0; i < q_.size(); ++i) {
      pair.happened[i] = Difference(static_cast<int>(i), after_[i] - q_[i]) / model_.spec.control_dt;
    }
    changes_.push_back(std::move(pair));
    contacts_ += acting.contact, limits_ += acting.limit;
    equalities_ = std::max(equalities_, acting.equalities);
    friction_losses_ = std::max(friction_losses_, acting.friction_losses);
    return !result.ends();
  }

  void Predict() {
    const size_t n = action_.size();
    for (size_t i = 0; i < f_.size(); ++i) {
      predicted_[i] = f_[i];
      for (size_t j = 0; j < n; ++j) {
        predicted_[i] += G_[i * n + j] * action_[j];
        driven_[i] = driven_[i] || G_[i * n + j] != 0;
      }
    }
  }

  // Angles of hinges without limits are in [-pi, pi].
  double Difference(int entry, double change) const {
    const bool wrapped =
        compiled_ != nullptr && layout_.first_order && layout_.joints[entry] == v1::ConstraintJoint::WRAPPED;
    return wrapped ? std::remainder(change, 2 * M_PI) : change;
  }

  // What acts at the state, from a copy of it. A text task's copy makes one time step under the action.
  Acting Look() {
    Acting acting;
    if (copy_ == nullptr) return acting;
    const mjModel& model = task_->simulation()->model();
    const mjData& data = *task_->simulation()->data();
    const bool played = GuardMujoco([&] {
                          mj_copyData(copy_.get(), &model, &data);
                          if (compiled_ == nullptr) {
                            mj_forward(&model, copy_.get());
                            return;
                          }
                          compiled_->actuation->Apply(action_.data(), clipped_.data(), copy_.get());
                          compiled_->actuation->Simulate(model, clipped_.data(), 1, copy_.get());
                        }).ok();
    if (!played) return acting;
    if (compiled_ != nullptr && !compiled_->actuation->finite_difference()) KeepOneStep(model, data);
    for (int i = 0; i < copy_->ncon; ++i) acting.contact |= Moves(model, copy_->contact[i]);
    std::set<int> equalities, losses;
    for (int i = 0; i < copy_->nefc; ++i) {
      const int type = copy_->efc_type[i], id = copy_->efc_id[i];
      acting.limit |= type == mjCNSTR_LIMIT_JOINT || type == mjCNSTR_LIMIT_TENDON;
      if (type == mjCNSTR_EQUALITY) equalities.insert(id);
      if (type == mjCNSTR_FRICTION_DOF) losses.insert(id);
      if (type == mjCNSTR_FRICTION_TENDON) losses.insert(-1 - id);
    }
    acting.equalities = static_cast<int>(equalities.size());
    acting.friction_losses = static_cast<int>(losses.size());
    return acting;
  }

  void KeepOneStep(const mjModel& model, const mjData& before) {
    Pair pair{predicted_, std::vector<double>(q_.size())};
    const bool positions = layout_.first_order;
    for (size_t i = 0; i < compiled_->joints.dofs.size(); ++i) {
      const int dof = compiled_->joints.dofs[i];
      const int at = positions ? model.jnt_qposadr[compiled_->joints.joints[i]] : dof;
      const mjtNum change = positions ? copy_->qpos[at] - before.qpos[at] : copy_->qvel[at] - before.qvel[at];
      pair.happened[layout_.driven_at() + i] = change / model.opt.timestep;
    }
    one_steps_.push_back(std::move(pair));
  }

  bool Moves(const mjModel& model, const mjContact& contact) const {
    if (contact.efc_address < 0) return false;
    const int geoms[2] = {contact.geom1, contact.geom2};
    return std::any_of(geoms, geoms + 2, [&](int geom) { return geom < 0 || moved_[model.geom_bodyid[geom]]; });
  }

  // The bodies that joints of q move; of a task that is no text file, those that any joint moves.
  void MarkBodies() {
    const mjModel& model = task_->simulation()->model();
    moved_.assign(model.nbody, false);
    std::vector<bool> in_q(model.njnt, compiled_ == nullptr);
    if (compiled_ != nullptr) {
      for (const int joint : compiled_->joints.joints) in_q[joint] = true;
    }
    for (int body = 1; body < model.nbody; ++body) {
      moved_[body] = moved_[model.body_parentid[body]];
      for (int i = 0; i < model.body_jntnum[body]; ++i) {
        if (in_q[model.body_jntadr[body] + i]) moved_[body] = true;
      }
    }
  }

  static double Median(const std::vector<int>& numbers, const std::vector<Pair>& pairs) {
    std::vector<double> errors;
    for (const Pair& pair : pairs) {
      double error = 0, size = 0;
      for (const int i : numbers) {
        error += std::pow(pair.predicted[i] - pair.happened[i], 2);
        size += std::pow(pair.happened[i], 2);
      }
      errors.push_back(error == 0 ? 0 : size == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(error / size));
    }
    std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2), errors.end());
    return errors[errors.size() / 2];
  }

  const TaskModel model_;
  const std::unique_ptr<Task> task_;
  const std::shared_ptr<const text::CompiledTask> compiled_;  // null: no text task
  const text::RowLayout layout_;                              // of a text task
  const MujocoData copy_;                                     // null: a task without MuJoCo
  const FitPlay play_;
  std::vector<bool> moved_, driven_;
  std::vector<double> observation_, action_, clipped_, q_, after_, f_, G_, predicted_;
  std::vector<Pair> changes_, one_steps_;
  double contacts_ = 0, limits_ = 0;
  int equalities_ = 0, friction_losses_ = 0;
};

std::string Percent(double value) {
  if (!std::isfinite(value)) return "an infinite";
  return absl::StrFormat("%.*f %%", value < 0.095 ? 1 : 0, 100 * value);
}

}  // namespace

double ProcessorSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

absl::StatusOr<ModelFit> MeasureFit(const std::string& task, const v1::TaskOptions& options, const FitPlay& play) {
  ASSIGN_OR_RETURN(TaskModel model, MakeTaskModel(task, options));
  ASSIGN_OR_RETURN(std::unique_ptr<Task> made, MakeTask(task, options));
  std::shared_ptr<const text::CompiledTask> compiled;
  text::RowLayout layout;
  if (options.HasExtension(v1::text_task)) {
    ASSIGN_OR_RETURN(compiled, text::CompiledTask::Shared(options.GetExtension(v1::text_task)));
    layout = text::RowLayout::Of(options.GetExtension(v1::text_task));
  }
  MujocoData copy;
  if (made->simulation() != nullptr) {
    ASSIGN_OR_RETURN(copy, MakeMujocoData(made->simulation()->model()));
  }
  return Player(std::move(model), std::move(made), std::move(compiled), layout, std::move(copy), play).Run();
}

std::string DescribeFit(const ModelFit& fit) {
  std::string text = absl::StrCat("under random actions f + G u predicts the change of q's ",
                                  fit.positions ? "positions" : "velocities",
                                  " over a control step with a median error of ", Percent(fit.control_step));
  if (fit.one_step) absl::StrAppend(&text, " (over one time step ", Percent(*fit.one_step), ")");
  if (fit.contacts > 0) absl::StrAppend(&text, "; contacts in ", Percent(fit.contacts), " of the steps");
  if (fit.limits > 0) absl::StrAppend(&text, "; a limit of a joint acts in ", Percent(fit.limits), " of the steps");
  if (fit.equalities > 0) absl::StrAppend(&text, "; equality constraints: ", fit.equalities);
  if (fit.friction_losses > 0) absl::StrAppend(&text, "; joints with friction loss: ", fit.friction_losses);
  return text;
}

std::string JudgeFit(const ModelFit& fit) {
  if (fit.control_step <= kGoodFit) return "The safe map can rely on f and G.";
  if (fit.control_step <= kRoughFit) return "The safe map can rely on f and G only roughly.";
  if (fit.control_step < 1) return "The safe map cannot rely on f and G.";
  return "The safe map cannot rely on f and G: to predict no change would be as good.";
}

absl::StatusOr<v1::TaskOptions> WithFiniteDifferences(const v1::TaskOptions& options) {
  v1::TaskOptions changed = options;
  v1::TextTask* const task = changed.MutableExtension(v1::text_task);
  task->mutable_definition()->mutable_control()->set_dynamics("finite_difference");
  task->mutable_definition()->mutable_constraint_state()->clear_passive_forces();
  RETURN_IF_ERROR(text::Resolve(task));
  return changed;
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
