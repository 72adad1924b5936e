// A task: static facts (TaskSpec) and control-affine model, which every role can link without MuJoCo (TaskModel), and
// the simulator (Task).
//
// A task of the register is one folder common/tasks/<name>/, which registers itself (register_task.h). A task that is a
// text file comes in the extension text_task of TaskOptions (common/tasks/text/task_file.h), one that is a Python
// environment in python_task (common/tasks/python/python_task.h).
#ifndef DATACOM_COMMON_TASKS_TASK_H_
#define DATACOM_COMMON_TASKS_TASK_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/random.h"
#include "common/safety/control_affine.h"
#include "common/safety/known_constraints.h"

namespace datacom {

namespace v1 {
class Constraints;
class TaskOptions;
}  // namespace v1

// What the rewards of a task can be. ReturnRangeOf bounds discounted returns with it.
struct RewardRange {
  double step_low = 0, step_high = 0;    // of a step that ends nothing
  double final_low = 0, final_high = 0;  // of an absorbing step
  // Rewards that are differences of a potential have a bounded discounted sum however long an episode is; they count
  // here, not above.
  double sum_low = 0, sum_high = 0;
};

struct TaskSpec {
  std::string name;
  std::string summary;  // one sentence, for `datacom list tasks`
  int obs_dim = 0;      // of an observation as rows hold it
  // Its last numbers, which only the control-affine model reads: terms that the simulator evaluated
  // (text/row_model.h). Policies and critics do not see them, and observation noise does not reach them.
  int model_dim = 0;
  // With several costs their names, and where their values begin in an observation. The task's cost is the largest.
  std::vector<std::string> cost_names;
  int costs_at = 0;
  std::string only_cost;  // the name of a single cost; empty if the task gives it none
  // Quantities that are only recorded, as means over an episode's steps, and where they begin in an observation.
  std::vector<std::string> log_names;
  int logs_at = 0;
  // What each number of observation and action is, with its unit: "cart x / m"; without a unit where there is none or
  // a text task does not know it.
  std::vector<std::string> observation_names, action_names;  // [obs_dim], [action_dim]
  int action_dim = 0;
  std::vector<double> action_low;      // [action_dim]
  std::vector<double> action_high;     // [action_dim]
  int horizon = 0;                     // steps per episode
  double control_dt = 0;               // s per step
  std::vector<std::string> init_keys;  // what `rollout --init` may set
  std::string absorbing;               // what ends an episode early, as a noun for messages; empty: nothing does
  std::optional<RewardRange> rewards;  // absent: not known
  int seen_dim() const { return obs_dim - model_dim; }  // what policies and critics see
};

// A plane through the observations, for maps of the feasibility value function.
struct ObservationSlice {
  std::string name;   // one word, for files
  std::string title;  // one line: the quantities held fixed
  std::string x_label, y_label;
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  // Writes the observation [obs_dim] at (x, y); false if there is none (out of the arm's reach).
  std::function<bool(double x, double y, double* observation)> at;
};

// A hand-written controller: a baseline for learned policies, which it can also teach (`demonstrations` of the
// experiment). It uses only the observation.
struct ScriptedPolicy {
  std::string name;     // one word, for --policy
  std::string summary;  // one sentence
  // Writes the action [action_dim], finite and within its bounds, for an observation [obs_dim]. Pure; thread-safe;
  // allocates nothing.
  std::function<void(const double* observation, double* action)> act;
};

// The static side. Immutable once made; thread-safe.
struct TaskModel {
  TaskSpec spec;
  std::shared_ptr<const ControlAffine> dynamics;  // never null
  std::string without_map;  // why there are no f and G, for methods that need them; empty: there are
  std::shared_ptr<const KnownConstraints> known_constraints;  // null if the task has none
  // The raw cost of the state of an observation [obs_dim]; with action_repeat, Task::Cost is the largest of the held
  // steps instead. Null if an observation does not determine it. Pure; thread-safe; allocates nothing.
  std::function<double(const double* observation)> cost;
  std::vector<ObservationSlice> slices;  // the first is shown by default
  std::vector<ScriptedPolicy> scripted;  // the first is the best; a task may have none
};

// Names of the register, sorted. The model side links without MuJoCo.
std::vector<std::string> TaskNames();
// `name` is a task of the register, or the name of the task that `options` carry (common/config/carried_task.h).
// NOT_FOUND, naming the task and the tasks that exist; INVALID_ARGUMENT for options that the task does not have.
absl::StatusOr<TaskModel> MakeTaskModel(absl::string_view name, const v1::TaskOptions& options);

struct StepResult {
  double reward = 0;
  double cost = 0;         // raw, signed, of the state reached; > 0 is a violation
  bool absorbing = false;  // the environment ended; the caller enforces the time limit (TaskSpec::horizon)
  bool valid = true;  // false: the simulator warned (bad qacc, contact buffer full): abandon the episode, keep no row
  bool truncated = false;  // the episode ends here, but its value goes on, as at a time limit
  bool ends() const { return absorbing || truncated; }
};

// Factors on the compiled physics; all 1 is the task as specified.
struct PhysicsScale {
  double mass = 1;  // masses and inertias
  double damping = 1;
  double friction = 1;
};

// INVALID_ARGUMENT for a start value that is not finite, and for a key that is not in init_keys, naming both.
absl::Status CheckStartValues(const TaskSpec& spec, const std::map<std::string, double>& init);

class Simulation;  // common/tasks/mujoco.h: model and data, for renderers

// One simulated environment. Not thread-safe; owns its simulation state; instances share the compiled model. Steps
// allocate nothing. No auto-reset: the observation after an absorbing step shows the terminal state, and Step may
// be called further.
class Task {
 public:
  virtual ~Task() = default;
  virtual const TaskSpec& spec() const = 0;
  // Starts an episode; all randomness comes from `stream`, a new one per episode. observation: [obs_dim], float64.
  virtual void Reset(RandomStream* stream, double* observation) { ResetTo({}, stream, observation).IgnoreError(); }
  // Starts an episode with these start values and draws the others. INVALID_ARGUMENT as CheckStartValues; OK without
  // any.
  virtual absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream,
                               double* observation) = 0;
  // Tells the action of the next Step. A caller of several tasks prepares all before it steps the first, so that those
  // that run in another process need not wait for each other.
  virtual void Prepare(const double* action) {}
  // action: [action_dim] float64, clipped as the task specifies. observation: [obs_dim] of the reached state.
  virtual StepResult Step(const double* action, double* observation) = 0;
  // Raw cost of the current state: after a step its StepResult::cost, after a reset the cost of the start.
  virtual double Cost() const = 0;
  // Whether the episode so far is a success (docs/tasks.md 3.4).
  virtual bool Success() const = 0;
  // Scales the physics from the next reset on. May allocate (its own model, the first time).
  virtual void ScalePhysics(const PhysicsScale& scale) = 0;
  // Renderers use it; null for tasks without MuJoCo (Python environments, test fakes).
  virtual const Simulation* simulation() const = 0;
  // Not OK: the task cannot go on, and its steps are invalid. Simulations in this process have no such end.
  virtual absl::Status status() const { return absl::OkStatus(); }
};

// The scripted policy of this name, which lives as long as the model. INVALID_ARGUMENT, naming the policies that exist.
absl::StatusOr<const ScriptedPolicy*> FindScriptedPolicy(const TaskModel& model, absl::string_view name);

// Indices of the rows that `names` (a set of rows and groups) selects, each once, in the task's order. INVALID_ARGUMENT
// for a name that is neither; the message lists the names that exist.
absl::StatusOr<std::vector<int>> SelectKnownRows(const TaskModel& model, const std::vector<std::string>& names);
// The rows of an experiment's constraints.known; messages begin with that field's name.
absl::StatusOr<std::vector<int>> SelectKnownRows(const TaskModel& model, const v1::Constraints& constraints);

// The range of discounted returns of a task, from the range of its rewards (docs/tasks.md 3.5). Pure
// functions.
struct ReturnRange {
  double low = 0, high = 0;
};

// Holds the discounted return from any state, for an episode that an absorbing step ends and for one that goes on for
// ever. discount: of a step of `spec`, in [0, 1). INVALID_ARGUMENT, naming the task, if it does not state its rewards.
absl::StatusOr<ReturnRange> ReturnRangeOf(const TaskSpec& spec, double discount);

// The range of rewards of a decision that holds an action for `repeat` >= 1 steps and adds their rewards.
RewardRange RepeatedRewards(const RewardRange& step, int repeat);

// The rest needs MuJoCo (target datacom::tasks; the functions above are in datacom::task_models).
absl::StatusOr<std::unique_ptr<Task>> MakeTask(absl::string_view name, const v1::TaskOptions& options);
// If `task` is the path of a task file (text/task_file.h) or "python:MODULE:CALLABLE" (python/python_task.h): puts the
// task into the options and replaces `task` by its name. A relative path belongs to the working directory, or else to
// `folder`. Does nothing for other names. INVALID_ARGUMENT with what is wrong. Blocks: reads files and compiles a
// model, or starts Python.
absl::Status LoadTaskOf(const std::string& folder, std::string* task, v1::TaskOptions* options);

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_TASK_H_
// SPDX-License-Identifier: Apache-2.0
