#include "deploy/tools/play/actions.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/records/csv.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/tools/policies/run_policies.h"

namespace datacom::tools {
namespace {

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

// Names of the action columns, in order.
absl::StatusOr<std::vector<std::string>> ActionColumns(const Csv& csv, const TaskSpec& spec, const std::string& path) {
  std::vector<std::vector<std::string>> namings(2);
  for (int i = 0; i < spec.action_dim; ++i) {
    namings[0].push_back(absl::StrCat("action", i));
    namings[1].push_back(absl::StrCat("a", i));
  }
  if (spec.action_dim == 1) namings.push_back({"action"});
  if (spec.action_dim == 2) namings.push_back({"a_v", "a_w"});
  std::vector<std::string> tried;
  for (const std::vector<std::string>& names : namings) {
    if (std::all_of(names.begin(), names.end(), [&](const std::string& name) { return csv.has(name); })) return names;
    tried.push_back(absl::StrJoin(names, ","));
  }
  return Invalid(absl::StrCat(path, ": no action columns for task ", spec.name,
                              "; one of these sets is needed: ", absl::StrJoin(tried, " | ")));
}

absl::StatusOr<std::vector<std::vector<double>>> ReadActions(const std::string& path, const TaskSpec& spec) {
  ASSIGN_OR_RETURN(const Csv csv, Csv::Read(path, Csv::Author::kPerson));
  ASSIGN_OR_RETURN(const std::vector<std::string> columns, ActionColumns(csv, spec, path));
  std::vector<std::vector<double>> actions;
  for (size_t row = 0; row < csv.rows(); ++row) {
    const auto empty = [&](const std::string& column) { return csv.Text(row, column).empty(); };
    if (csv.Text(row, "step") == "0" || std::all_of(columns.begin(), columns.end(), empty)) continue;
    std::vector<double> action;
    for (const std::string& column : columns) {
      action.push_back(csv.Number(row, column));
      if (!std::isfinite(action.back())) return csv.Wrong(row, column, "finite number");
    }
    actions.push_back(std::move(action));
  }
  return actions;
}

}  // namespace

absl::StatusOr<ActionSource> RecordedActions(const std::string& path, const TaskSpec& spec) {
  ASSIGN_OR_RETURN(std::vector<std::vector<double>> actions, ReadActions(path, spec));
  return ActionSource([actions = std::move(actions)](uint64_t step, const double*, double* action) {
    if (step >= actions.size()) return false;
    std::copy(actions[step].begin(), actions[step].end(), action);
    return true;
  });
}

absl::StatusOr<std::map<std::string, double>> ParseInit(const std::string& text) {
  std::map<std::string, double> init;
  if (text.empty()) return init;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    double value = 0;
    if (pair.size() != 2 || pair[0].empty() || !absl::SimpleAtod(pair[1], &value) || !std::isfinite(value)) {
      return Invalid(absl::StrCat("--init: \"", part, "\" is not key=number"));
    }
    if (!init.emplace(pair[0], value).second) return Invalid(absl::StrCat("--init: two values of ", pair[0]));
  }
  return init;
}

absl::StatusOr<NamedTask> FindTask(const std::string& task, const std::vector<std::string>& set) {
  RETURN_IF_ERROR(CheckNamesNoExperiment(task));
  v1::Experiment experiment;
  experiment.set_task(task);
  RETURN_IF_ERROR(LoadTaskOf("", experiment.mutable_task(), experiment.mutable_task_options()));
  RETURN_IF_ERROR(ApplyTaskOptions(set, &experiment));
  return NamedTask{experiment.task(), experiment.task_options()};
}

absl::Status PlayActions(const ActionSource& source, const std::map<std::string, double>& init, bool stop_at_end,
                         RandomStream* stream, const StateWatcher& watcher, Task* task) {
  std::vector<double> action(task->spec().action_dim), next(action), observation(task->spec().obs_dim);
  RETURN_IF_ERROR(task->ResetTo(init, stream, observation.data()));
  actor::EpisodeState state;
  state.task = task;
  state.observation = observation.data();
  state.reached.cost = task->Cost();
  for (const double* led_here = nullptr;; led_here = action.data()) {
    state.last = !state.reached.valid || (stop_at_end && state.reached.ends()) ||
                 !source(state.step, observation.data(), next.data());
    RETURN_IF_ERROR(watcher(state, led_here));
    if (state.last) return absl::OkStatus();
    action = next;
    state.reached = task->Step(action.data(), observation.data());
    state.sum_reward += state.reached.reward;
    ++state.step;
  }
}

namespace {

// A policy without parameters, which chooses the action of each environment by itself.
class UntrainedRule : public ActingRule {
 public:
  // Writes the action [action_dim] for an observation [obs_dim] and noise [noise_dim].
  using Choose = std::function<void(const double* observation, const float* noise, double* action)>;
  UntrainedRule(const TaskSpec& spec, int noise_dim, Choose choose)
      : noise_dim_(noise_dim), choose_(std::move(choose)), observation_(spec.obs_dim), action_(spec.action_dim) {}
  absl::Status Load(const Snapshot& /*snapshot*/) override {
    return absl::FailedPreconditionError("an untrained policy has no parameters to load");
  }
  void Act(int batch, const ActingInputs& inputs, float* actions, const ActingDiagnostics&) override {
    const size_t width = observation_.size(), n = action_.size();
    for (int i = 0; i < batch; ++i) {
      std::copy_n(inputs.observations + i * width, width, observation_.begin());
      choose_(observation_.data(), inputs.noise + size_t{1} * i * noise_dim_, action_.data());
      std::transform(action_.begin(), action_.end(), actions + i * n, [](double a) { return static_cast<float>(a); });
    }
  }
  int noise_dim() const override { return noise_dim_; }

 private:
  const int noise_dim_;
  const Choose choose_;
  std::vector<double> observation_, action_;
};

// Uniform within the bounds, from standard normal noise.
UntrainedRule::Choose Random(const TaskSpec& spec) {
  return [low = spec.action_low, high = spec.action_high](const double*, const float* noise, double* action) {
    for (size_t i = 0; i < low.size(); ++i) {
      const double uniform = std::erfc(-noise[i] * M_SQRT1_2) / 2;  // normal cumulative distribution function
      action[i] = low[i] + uniform * (high[i] - low[i]);
    }
  };
}

}  // namespace

absl::StatusOr<UntrainedPolicy> MakeUntrainedPolicy(const std::string& name, const TaskModel& model) {
  const TaskSpec& spec = model.spec;
  const auto made = [&spec](const std::string& title, int noise_dim, UntrainedRule::Choose choose) {
    return UntrainedPolicy{title, std::make_unique<UntrainedRule>(spec, noise_dim, std::move(choose))};
  };
  if (name == "zeros") {
    return made("zeros: zero actions", 0,
                [n = spec.action_dim](const double*, const float*, double* action) { std::fill_n(action, n, 0.0); });
  }
  if (name == "random")
    return made("random: uniform actions, drawn independently at every step", spec.action_dim, Random(spec));
  std::vector<std::string> names = {"zeros", "random"};
  if (!model.scripted.empty()) names.emplace_back("scripted");
  for (const ScriptedPolicy& policy : model.scripted) {
    if (name == "scripted" || name == policy.name) {
      return made(
          absl::StrCat(policy.name, ": ", policy.summary), 0,
          [act = policy.act](const double* observation, const float*, double* action) { act(observation, action); });
    }
    names.push_back(policy.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--policy ", name, ": task ", spec.name,
                   name == "scripted" ? " has no scripted policy; it has: " : " has no such policy; it has: ",
                   absl::StrJoin(names, ", ")));
}

ActionSource PolicyActions(UntrainedPolicy policy, const TaskSpec& spec, uint64_t seed) {
  const std::shared_ptr<ActingRule> rule = std::move(policy.rule);
  return [rule, spec, seed](uint64_t step, const double* observation, double* action) {
    if (step >= static_cast<uint64_t>(spec.horizon)) return false;
    const std::vector<float> seen(observation, observation + spec.obs_dim);
    std::vector<float> noise(rule->noise_dim()), chosen(spec.action_dim);
    FillNormal(StreamKey("rollout.noise", {seed, step}), noise.data(), rule->noise_dim());
    const float previous_cost = 0;
    rule->Act(1, {seen.data(), noise.data(), &previous_cost}, chosen.data(), {});
    std::copy(chosen.begin(), chosen.end(), action);
    return true;
  };
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
