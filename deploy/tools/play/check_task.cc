#include "deploy/tools/play/commands.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "Eigen/SVD"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/random.h"
#include "common/base/standard_output.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"
#include "common/tasks/text/mujoco_compiled.h"
#include "common/tasks/text/mujoco_names.h"
#include "common/tasks/text/mujoco_signals.h"
#include "common/tasks/text/row_model.h"
#include "common/tasks/text/task_file.h"
#include "common/transitions/check_columns.h"
#include "datacom/v1/task.pb.h"
#include "deploy/tools/play/actions.h"
#include "deploy/tools/play/model_fit.h"
#include "mujoco/mujoco.h"

namespace datacom::tools {
namespace {

// How fast a task that is a text file steps, compared with bare MuJoCo: seconds of this thread's processor time for one
// control step.
struct TaskSpeed {
  double task = 0;  // a step of the task, with signals, expressions, f and G
  double bare = 0;  // only mj_step, for the same actions from the same starts
};

constexpr int kBlockSteps = 100, kMostBlocks = 100;

class Measurement {
 public:
  Measurement(const text::CompiledTask& compiled, const TaskModel& model, MujocoData bare, Task* task)
      : compiled_(compiled), model_(model), bare_(std::move(bare)), task_(task) {
    const ControlAffineDims dims = model.dynamics->dims();
    observation_.resize(dims.obs), f_.resize(dims.q), G_.resize(dims.q * dims.action), clipped_.resize(dims.action);
    steps_ = std::min(kBlockSteps, model.spec.horizon);
  }

  // Adds the time of one block of steps to `speed`.
  absl::Status Block(RandomStream stream, TaskSpeed* speed) {
    std::vector<double> actions(steps_ * clipped_.size());
    for (double& action : actions) action = stream.Uniform(-1, 1);
    task_->Reset(&stream, observation_.data());
    const mjModel& physics = *compiled_.model;
    RETURN_IF_ERROR(GuardMujoco([&] {
      mj_resetData(&physics, bare_.get());
      CopyState(physics, *task_->simulation()->data(), bare_.get());
      mj_forward(&physics, bare_.get());
      const double began = ProcessorSeconds();
      for (size_t at = 0; at < actions.size() && !Stopped(); at += clipped_.size()) TaskStep(&actions[at]);
      const double middle = ProcessorSeconds();
      for (size_t at = 0; at < actions.size() && !Stopped(); at += clipped_.size()) BareStep(&actions[at]);
      speed->task += middle - began;
      speed->bare += ProcessorSeconds() - middle;
    }));
    return Stopped() ? absl::CancelledError("stopping was requested") : absl::OkStatus();
  }
  int steps() const { return steps_; }

 private:
  static bool Stopped() { return Stop::Process().requested(); }
  void TaskStep(const double* action) {
    task_->Step(action, observation_.data());
    model_.dynamics->Evaluate(observation_.data(), {nullptr, nullptr, nullptr, f_.data(), G_.data()});
  }
  void BareStep(const double* action) {
    compiled_.actuation->Apply(action, clipped_.data(), bare_.get());
    for (int i = 0; i < compiled_.actuation->substeps() && !Stopped(); ++i) mj_step(compiled_.model.get(), bare_.get());
  }

  const text::CompiledTask& compiled_;
  const TaskModel& model_;
  MujocoData bare_;
  Task* const task_;
  int steps_ = 0;
  std::vector<double> observation_, f_, G_, clipped_;
};

// Measures both in turn, in short blocks, for up to `seconds` of processor time. `task` is one of `compiled`; `model`
// has its f and G.
absl::StatusOr<TaskSpeed> MeasureTaskSpeed(const text::CompiledTask& compiled, const TaskModel& model, uint64_t seed,
                                           double seconds, Task* task) {
  ASSIGN_OR_RETURN(MujocoData bare, MakeMujocoData(*compiled.model));
  Measurement measurement(compiled, model, std::move(bare), task);
  TaskSpeed warm_up, speed;
  RETURN_IF_ERROR(measurement.Block(RandomStream(StreamKey("check_task.warm_up", {seed})), &warm_up));
  int steps = 0;
  for (uint64_t block = 0; block < kMostBlocks && speed.task + speed.bare < seconds; ++block) {
    RETURN_IF_ERROR(measurement.Block(RandomStream(StreamKey("check_task.speed", {seed, block})), &speed));
    steps += measurement.steps();
  }
  return TaskSpeed{speed.task / steps, speed.bare / steps};
}

constexpr double kIllConditioned = 1e3;  // condition number of G above which the safe map asks for large actions
constexpr double kSpeedSeconds = 2, kOtherSpeedSeconds = 0.5;
constexpr size_t kLargeRow = 16 << 10;  // bytes
constexpr uint32_t kFitSteps = 1000;    // at most, to measure f and G
constexpr double kRowTolerance = 1e-3;  // in the unit of a known row

// The values that one number took.
struct Seen {
  std::string name;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  uint64_t broken = 0;  // times that a training would call the step invalid
  void Add(double value) {
    const bool sane = std::abs(value) <= kLargestValue;
    if (sane) low = std::min(low, value), high = std::max(high, value);
    if (!sane) ++broken;
  }
  bool constant() const { return broken == 0 && low == high; }
};

struct CostSeen {
  Seen value;
  uint64_t steps = 0, episodes = 0, starts = 0;  // each counts those with a violation
  bool in_episode = false;
};

class Check {
 public:
  Check(const CheckTaskCommand& command, v1::TaskOptions options, std::shared_ptr<const text::CompiledTask> compiled,
        TaskModel model, std::unique_ptr<Task> task, std::ostream* out)
      : command_(command),
        options_(std::move(options)),
        compiled_(std::move(compiled)),
        layout_(text::RowLayout::Of(options_.GetExtension(v1::text_task))),
        model_(std::move(model)),
        task_(std::move(task)),
        shown_(out) {
    for (const std::string& name : options_.GetExtension(v1::text_task).resolved().observation())
      seen_.push_back({name});
    for (const std::string& name : compiled_->extra.names()) extra_.push_back({name});
    for (const v1::Log& log : compiled_->definition.log()) logs_.push_back({log.name()});
    for (const v1::Cost& cost : compiled_->definition.cost()) costs_.push_back({{"cost " + cost.name()}});
    const ControlAffineDims dims = model_.dynamics->dims();
    observation_.resize(dims.obs), extra_values_.resize(extra_.size());
    action_.resize(dims.action), f_values_.resize(dims.q), G_values_.resize(dims.q * dims.action);
    reaches_.assign(dims.action, 0);
    if (model_.known_constraints == nullptr) return;
    for (const std::string& name : model_.known_constraints->names()) known_.push_back({name});
    q_.resize(dims.q), x_.resize(dims.x), k_.resize(known_.size());
  }

  absl::Status Run() {
    PrintSpecification();
    Show();
    absl::Status status = Play();
    if (status.ok()) PrintPlay();
    Show();
    if (status.ok()) status = PrintFit();
    if (status.ok()) status = PrintSpeed();
    if (status.ok()) status = Verdict();
    Show();
    return status;
  }

 private:
  // Shows what was printed since the last time, in lines that fit.
  void Show() {
    *shown_ << WrapLines(text_.str(), command_.width);
    shown_->flush();
    text_.str("");
  }
  void PrintPlay() {
    PrintSeen();
    PrintRangeFinders();
    PrintCosts();
    PrintKnownRows();
    PrintModel();
  }
  void PrintSpecification() const {
    const TaskSpec& spec = model_.spec;
    const v1::ResolvedTask& resolved = options_.GetExtension(v1::text_task).resolved();
    const mjModel& physics = *compiled_->model;
    const int uncontrolled_at = resolved.state_size() - static_cast<int>(resolved.uncontrolled());
    *out_ << spec.name << ": " << spec.summary << '\n'
          << absl::StrFormat("time         control step %.6g s (%d time steps of %.6g s), horizon %d steps = %.6g s\n",
                             spec.control_dt, compiled_->actuation->substeps(), physics.opt.timestep, spec.horizon,
                             spec.horizon * spec.control_dt)
          << "action       " << Counted(resolved.action()) << ", " << ControlKind() << '\n'
          << "observation  " << Counted(resolved.observation()) << '\n'
          << absl::StrFormat(
                 "row          %d bytes of observations in a stored transition, %d of them for f, G and known rows%s\n",
                 2 * sizeof(float) * spec.obs_dim, 2 * sizeof(float) * spec.model_dim,
                 2 * sizeof(float) * spec.obs_dim > kLargeRow ? "; such rows make training slow" : "")
          << "q            " << Counted(Names(0, uncontrolled_at)) << '\n'
          << "x            " << Counted(Names(uncontrolled_at, resolved.state_size())) << '\n'
          << "known rows   " << Counted(KnownNames()) << '\n';
  }
  std::string ControlKind() const {
    const v1::Control& control = compiled_->definition.control();
    std::string kind = absl::StrCat(control.mode(), " control");
    for (const v1::ActuatorMode& each : control.actuator_mode()) {
      absl::StrAppend(&kind, ", ", each.actuator(), " ", each.mode(), " control");
    }
    if (compiled_->actuation->finite_difference()) absl::StrAppend(&kind, ", f and G by finite differences");
    return kind;
  }
  std::vector<std::string> Names(int first, int end) const {
    const auto& state = options_.GetExtension(v1::text_task).resolved().state();
    return {state.begin() + first, state.begin() + end};
  }
  std::vector<std::string> KnownNames() const {
    std::vector<std::string> names;
    for (const v1::KnownRow& row : options_.GetExtension(v1::text_task).resolved().known()) names.push_back(row.name());
    return names;
  }
  template <typename List>
  static std::string Counted(const List& names) {
    return names.empty() ? "none" : absl::StrCat(names.size(), ": ", absl::StrJoin(names, ", "));
  }

  // Plays exactly the steps that were asked for. A step that ends its episode counts as well.
  absl::Status Play() {
    const int horizon = model_.spec.horizon;
    for (; steps_ < command_.steps; ++episodes_) {
      RandomStream stream(StreamKey("check_task.reset", {command_.seed, episodes_}));
      RandomStream actions(StreamKey("check_task.actions", {command_.seed, episodes_}));
      task_->Reset(&stream, observation_.data());
      for (CostSeen& cost : costs_) cost.in_episode = false;
      Observe(task_->Cost(), /*start=*/true);
      ObserveKnownRows();
      uint64_t held = 0;
      for (int t = 0; t < horizon && steps_ < command_.steps; ++t) {
        if (Stop::Process().requested()) return absl::CancelledError("stopping was requested");
        if (held == 0) {
          for (double& action : action_) action = actions.Uniform(-1, 1);
          held = 1 + actions.Below(kMostHeld);
        }
        --held;
        const StepResult result = task_->Step(action_.data(), observation_.data());
        ++steps_;
        reward_.Add(result.reward);
        Observe(result.cost, /*start=*/false);
        if (!result.valid) ++invalid_;
        if (result.ends()) ++ended_;
        if (result.valid && result.ends() && t == 0) ++at_once_;
        if (!result.valid || result.ends()) break;
      }
      successes_ += task_->Success();
    }
    return absl::OkStatus();
  }

  void Observe(double cost, bool start) {
    for (size_t i = 0; i < seen_.size(); ++i) seen_[i].Add(observation_[i]);
    const Simulation& simulation = *task_->simulation();
    compiled_->extra.Read(simulation.model(), *simulation.data(), extra_values_.data());
    for (size_t i = 0; i < extra_.size(); ++i) extra_[i].Add(extra_values_[i]);
    for (size_t i = 0; i < logs_.size(); ++i) logs_[i].Add(observation_[layout_.logs_at + i]);
    for (size_t i = 0; i < costs_.size(); ++i) {
      CostSeen& seen = costs_[i];
      const double value = layout_.costs > 0 ? observation_[layout_.costs_at + i] : cost;
      seen.value.Add(value);
      if (!(value > 0)) continue;
      if (start) ++seen.starts;
      if (!start) ++seen.steps;
      if (!seen.in_episode) ++seen.episodes;
      seen.in_episode = true;
    }
    ObserveModel();
  }

  void ObserveModel() {
    model_.dynamics->Evaluate(observation_.data(), {nullptr, nullptr, nullptr, f_values_.data(), G_values_.data()});
    for (const double value : f_values_) f_.Add(value);
    for (const double value : G_values_) G_.Add(value);
    const auto rows = static_cast<Eigen::Index>(f_values_.size()), columns = static_cast<Eigen::Index>(action_.size());
    const Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> G(G_values_.data(),
                                                                                                     rows, columns);
    if (!G.allFinite()) return;
    for (Eigen::Index i = 0; i < columns; ++i) reaches_[i] = std::max(reaches_[i], G.col(i).norm());
    const Eigen::VectorXd values = Eigen::JacobiSVD<Eigen::MatrixXd>(G).singularValues();
    const double least = values[values.size() - 1];
    conditions_.push_back(least > 0 ? values[0] / least : std::numeric_limits<double>::infinity());
  }

  void ObserveKnownRows() {
    if (known_.empty()) return;
    ControlAffineOut state;
    state.q = q_.data(), state.x = x_.data();
    model_.dynamics->Evaluate(observation_.data(), state);
    KnownConstraintsOut rows;
    rows.k = k_.data();
    model_.known_constraints->Evaluate({q_.data(), x_.data(), observation_.data()}, rows);
    for (size_t i = 0; i < known_.size(); ++i) known_[i].Add(k_[i]);
  }

  void PrintSeen() const {
    *out_ << absl::StrFormat(
        "\n%d random steps in %d episodes; each action is held for 1 to %d control steps.\n"
        "%d episodes ended early, %d with success, %d because MuJoCo reported an invalid step.\n\n"
        "%-36s %12s %12s\n",
        steps_, episodes_, kMostHeld, ended_ + invalid_, successes_, invalid_, "number", "least", "largest");
    for (const Seen& seen : seen_) PrintLine(seen, "observation ");
    for (const Seen& seen : extra_) PrintLine(seen, "extra ");
    for (const Seen& seen : logs_) PrintLine(seen, "log ");
    PrintLine(reward_, "");
    for (const CostSeen& cost : costs_) PrintLine(cost.value, "");
    PrintLine(f_, "");
    PrintLine(G_, "");
  }
  void PrintLine(const Seen& seen, const std::string& kind) const {
    const std::string note = seen.broken > 0   ? absl::StrCat("  not finite, ", seen.broken, " times")
                             : seen.constant() ? "  constant"
                                               : "";
    const bool any = seen.low <= seen.high;
    *out_ << absl::StrFormat("%-36s %12s %12s%s\n", kind + seen.name, any ? absl::StrFormat("%.5g", seen.low) : "-",
                             any ? absl::StrFormat("%.5g", seen.high) : "-", note);
  }

  // Those whose -1 looks like a hit at once.
  void PrintRangeFinders() const {
    const mjModel& physics = *compiled_->model;
    const v1::TaskDefinition& task = compiled_->definition;
    std::set<int> read;
    for (const auto* signals : {&task.observation(), &task.extra(), &task.constraint_state().uncontrolled()}) {
      for (const v1::Signal& signal : *signals) {
        if (!signal.has_sensor()) continue;
        const auto found = text::Match(physics, mjOBJ_SENSOR, signal.sensor(), "sensor");
        if (found.ok()) read.insert(found->begin(), found->end());
      }
    }
    for (const int id : read) {
      const bool one = text::IsRangeFinder(physics, id);
      if (physics.sensor_type[id] != mjSENS_RANGEFINDER || (one && physics.sensor_cutoff[id] > 0)) continue;
      *out_ << "the sensor " << text::PlainName(physics, mjOBJ_SENSOR, id) << " reads -1 where it hits nothing; "
            << (one ? "give it a cutoff in the model, then it reads that\n"
                    : "a cutoff does not change that, as the sensor has several numbers\n");
    }
  }

  void PrintCosts() const {
    *out_ << '\n';
    for (const CostSeen& cost : costs_) {
      *out_ << absl::StrFormat(
          "%s: violated in %.3g %% of the steps and in %d of %d episodes", cost.value.name,
          100.0 * static_cast<double>(cost.steps) / static_cast<double>(std::max<uint64_t>(1, steps_)), cost.episodes,
          episodes_);
      if (cost.starts > 0) *out_ << "; " << cost.starts << " starts violate it already: change start or cost";
      *out_ << '\n';
    }
  }

  // Rows that starts violate: the safe map cannot keep what does not hold.
  void PrintKnownRows() const {
    for (size_t i = 0; i < known_.size(); ++i) {
      const bool equality = model_.known_constraints->equality(static_cast<int>(i));
      const double most = equality ? std::max(known_[i].high, -known_[i].low) : known_[i].high;
      if (!(most > kRowTolerance)) continue;
      *out_ << absl::StrFormat("known row %s: starts %s by up to %.3g; change start or row\n", known_[i].name,
                               equality ? "miss its equation" : "violate it", most);
    }
  }

  // How well f and G predict the simulator, and whether finite differences would do it better.
  absl::Status PrintFit() const {
    const FitPlay play{command_.seed, std::min(command_.steps, kFitSteps)};
    const std::string& without_map = model_.without_map;
    double error = std::numeric_limits<double>::infinity();
    if (!without_map.empty()) {
      *out_ << "fit: no f and G: " << without_map << ".\n"
            << "     Methods without a safe map (sac, lag_sac, wcsac, ppo_lag, rcpo) can train the task as it is.\n";
    } else {
      const absl::StatusOr<ModelFit> fit = MeasureFit(model_.spec.name, options_, play);
      if (absl::IsCancelled(fit.status())) return fit.status();
      if (!fit.ok()) return absl::OkStatus();  // the verdict says why: no step was valid
      error = fit->control_step;
      *out_ << "fit: " << DescribeFit(*fit) << ".\n     " << JudgeFit(*fit) << '\n';
    }
    if (error <= kGoodFit || compiled_->actuation->finite_difference()) return absl::OkStatus();
    const absl::StatusOr<v1::TaskOptions> other = WithFiniteDifferences(options_);
    if (!other.ok()) return absl::OkStatus();
    const absl::StatusOr<ModelFit> fit = MeasureFit(model_.spec.name, *other, play);
    if (absl::IsCancelled(fit.status())) return fit.status();
    if (!fit.ok()) return absl::OkStatus();
    ASSIGN_OR_RETURN(std::shared_ptr<const text::CompiledTask> compiled,
                     text::CompiledTask::Shared(other->GetExtension(v1::text_task)));
    ASSIGN_OR_RETURN(const TaskModel model, MakeTaskModel(model_.spec.name, *other));
    ASSIGN_OR_RETURN(const std::unique_ptr<Task> task, MakeTask(model_.spec.name, *other));
    ASSIGN_OR_RETURN(const TaskSpeed speed,
                     MeasureTaskSpeed(*compiled, model, command_.seed, kOtherSpeedSeconds, task.get()));
    *out_ << absl::StrFormat(
        "     With control { dynamics: \"finite_difference\" } the error is %.3g %%, at %.4g control steps per "
        "second%s.\n",
        100 * fit->control_step, 1 / speed.task,
        fit->control_step < error / 2 ? ": write it for methods with a safe map" : "; it is not much better");
    return absl::OkStatus();
  }

  void PrintModel() {
    std::sort(conditions_.begin(), conditions_.end());
    if (conditions_.empty()) return;
    *out_ << absl::StrFormat("G: %d x %d, condition number %.4g to %.4g, median %.4g\n", f_values_.size(),
                             action_.size(), conditions_.front(), conditions_.back(),
                             conditions_[conditions_.size() / 2]);
    for (size_t i = 0; i < reaches_.size(); ++i) {
      if (reaches_[i] > 0) continue;
      *out_ << "  the actuator " << options_.GetExtension(v1::text_task).resolved().action(static_cast<int>(i))
            << " never moves q: leave it out of control.actuator, or add its joint to constraint_state.joint\n";
    }
    if (conditions_.back() > kIllConditioned) {
      *out_ << "  above " << kIllConditioned
            << " some direction of q hardly answers to the action; the safe map then asks for large actions. Compare "
               "the\n"
               "  control ranges and the units of the joints.\n";
    }
  }

  absl::Status PrintSpeed() const {
    ASSIGN_OR_RETURN(const TaskSpeed speed,
                     MeasureTaskSpeed(*compiled_, model_, command_.seed, kSpeedSeconds, task_.get()));
    *out_ << absl::StrFormat(
        "speed: %.4g control steps per second of one processor, with signals, expressions, f and G;\n"
        "       %.3g %% of the rate of bare mj_step (%.4g), measured in turn\n",
        1 / speed.task, 100 * speed.bare / speed.task, 1 / speed.bare);
    return absl::OkStatus();
  }

  absl::Status Verdict() const {
    std::vector<std::string> broken;
    const auto note = [&broken](const Seen& seen) {
      if (seen.broken > 0) broken.push_back(seen.name);
    };
    for (const auto* list : {&seen_, &extra_, &logs_}) std::for_each(list->begin(), list->end(), note);
    for (const CostSeen& cost : costs_) note(cost.value);
    for (const Seen* seen : {&reward_, &f_, &G_}) note(*seen);
    if (!broken.empty()) {
      return absl::InternalError(absl::StrCat(command_.file, ": not always finite: ", absl::StrJoin(broken, ", "),
                                              "; numbers above ", kLargestValue, " count as infinite"));
    }
    if (at_once_ == episodes_) {
      return absl::InternalError(absl::StrCat(command_.file,
                                              ": every episode ends in its first step: `absorbing` or "
                                              "`truncated` is not 0 there; change it or start"));
    }
    if (invalid_ > 0) {
      return absl::InternalError(absl::StrCat(command_.file, ": MuJoCo reported ", invalid_, " of ", steps_,
                                              " steps as invalid (a bad state, or a full buffer); a training drops "
                                              "these episodes. Try a smaller time step in the model"));
    }
    *out_ << "All numbers were finite.\n";
    return absl::OkStatus();
  }

  const CheckTaskCommand& command_;
  const v1::TaskOptions options_;
  const std::shared_ptr<const text::CompiledTask> compiled_;
  const text::RowLayout layout_;
  const TaskModel model_;
  const std::unique_ptr<Task> task_;
  std::ostream* const shown_;
  std::ostringstream text_;
  std::ostream* const out_ = &text_;
  std::vector<Seen> seen_, extra_, logs_, known_;  // of the known rows what the starts have
  Seen reward_{"reward"}, f_{"f"}, G_{"G"};
  std::vector<CostSeen> costs_;
  std::vector<double> observation_, extra_values_, action_, f_values_, G_values_, q_, x_, k_;
  std::vector<double> reaches_, conditions_;  // largest length of each column of G; one condition number per state
  uint64_t episodes_ = 0, steps_ = 0, ended_ = 0, invalid_ = 0, successes_ = 0;
  uint64_t at_once_ = 0;  // episodes that `absorbing` or `truncated` ended in their first step
};

}  // namespace

absl::Status RunCheckTaskCommand(const CheckTaskCommand& command, std::ostream* out) {
  if (!text::IsTaskFile(command.file)) {
    return absl::InvalidArgumentError(absl::StrCat(
        command.file, " is not a task file; its name must end in .textproto, e.g. my_robot/task.textproto"));
  }
  ASSIGN_OR_RETURN(const NamedTask named, FindTask(command.file, {}));
  const v1::TaskOptions& options = named.options;
  ASSIGN_OR_RETURN(std::shared_ptr<const text::CompiledTask> compiled,
                   text::CompiledTask::Shared(options.GetExtension(v1::text_task)));
  ASSIGN_OR_RETURN(TaskModel model, MakeTaskModel(named.name, options));
  ASSIGN_OR_RETURN(std::unique_ptr<Task> task, MakeTask(named.name, options));
  Stop::InstallSignalHandlers();  // MuJoCo's compiler cannot be asked to stop, so until here a signal ends the process
  return Check(command, options, std::move(compiled), std::move(model), std::move(task), out).Run();
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
