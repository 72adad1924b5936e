// What a task is: static facts (TaskSpec) and the control-affine model, known to every role without MuJoCo (TaskModel);
// and the simulator, known to the actor alone (Task).
//
// A task is one folder common/tasks/<name>/ and one line in common/tasks/register.inc.
#ifndef DATACOM_COMMON_TASKS_TASK_H_
#define DATACOM_COMMON_TASKS_TASK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
class TaskOptions;
}

struct TaskSpec {
  std::string name;
  std::string summary;  // one sentence, for `datacom list tasks`
  int obs_dim = 0;
  int action_dim = 0;
  std::vector<double> action_low;      // [action_dim]
  std::vector<double> action_high;     // [action_dim]
  int horizon = 0;                     // steps of an episode
  double control_dt = 0;               // s, of a step
  std::vector<std::string> init_keys;  // what `rollout --init` may set
  std::string absorbing;               // what ends an episode early, a noun for people; empty: nothing does
};

// A plane through the observations, for maps of the feasibility value function.
struct ObservationSlice {
  std::string name;   // one word, for files
  std::string title;  // one line: what is held fixed
  std::string x_label, y_label;
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  // Writes the observation [obs_dim] that stands at (x, y); false where there is none (out of the arm's reach).
  std::function<bool(double x, double y, double* observation)> at;
};

// A controller written by hand, to hold learned policies against. It sees nothing but the observation.
struct ScriptedPolicy {
  std::string name;     // one word, what --policy takes
  std::string summary;  // one sentence
  // Writes the action [action_dim] for an observation [obs_dim]. Pure; thread-safe; allocates nothing.
  std::function<void(const double* observation, double* action)> act;
};

// Static side. Immutable after making; safe to share.
struct TaskModel {
  TaskSpec spec;
  std::shared_ptr<const ControlAffine> dynamics;              // never null
  std::shared_ptr<const KnownConstraints> known_constraints;  // null where the task has no analytic constraints
  std::vector<ObservationSlice> slices;                       // the first is the one to show
  std::vector<ScriptedPolicy> scripted;                       // the first is the best; a task may have none
};

// Names in register order. Linking only the model side needs no MuJoCo.
std::vector<std::string> TaskNames();
// NOT_FOUND naming the task and listing those that exist; INVALID_ARGUMENT for options the task refuses.
absl::StatusOr<TaskModel> MakeTaskModel(absl::string_view name, const v1::TaskOptions& options);

struct StepResult {
  double reward = 0;
  double cost = 0;         // raw, signed, of the state reached; > 0 is a violation
  bool absorbing = false;  // the environment ended; the time limit is the caller's business (TaskSpec::horizon)
  bool valid = true;  // false: the simulator warned (bad qacc, contact buffer full): abandon the episode, keep no row
};

// Factors on the compiled physics; 1 everywhere is the task as specified.
struct PhysicsScale {
  double mass = 1;  // masses and inertias
  double damping = 1;
  double friction = 1;
};

class Simulation;  // common/tasks/mujoco.h: model and data, for renderers

// One simulated environment. Not thread-safe; owns its simulation state; makers share the compiled model. Steps
// allocate nothing. No auto-reset: the observation after an absorbing step is that of the terminal state, and Step may
// go on.
class Task {
 public:
  virtual ~Task() = default;
  virtual const TaskSpec& spec() const = 0;
  // Starts an episode; everything random comes from `stream`, which is new for each. observation: [obs_dim], float64.
  virtual void Reset(RandomStream* stream, double* observation) = 0;
  // As Reset, then sets the named start values. INVALID_ARGUMENT for a key the task has not (naming it and init_keys).
  virtual absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream,
                               double* observation) = 0;
  // action: [action_dim] float64, clipped as the task's specification says. observation: [obs_dim] of the reached
  // state.
  virtual StepResult Step(const double* action, double* observation) = 0;
  // Raw cost of the current state: after a step that step's StepResult::cost, after a reset that of the start.
  virtual double Cost() const = 0;
  // Did the episode so far end well (common/tasks/README.md 3.4)?
  virtual bool Success() const = 0;
  // Physics from the next reset on. May allocate (a model of its own, the first time).
  virtual void ScalePhysics(const PhysicsScale& scale) = 0;
  // For renderers; null where MuJoCo is not behind it (fakes).
  virtual const Simulation* simulation() const = 0;
};

// Links MuJoCo (target datacom::tasks; the functions above are in datacom::task_models).
absl::StatusOr<std::unique_ptr<Task>> MakeTask(absl::string_view name, const v1::TaskOptions& options);

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_TASK_H_
