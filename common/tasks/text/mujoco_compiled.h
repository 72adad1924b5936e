// A task file with its compiled model: what the definition's names mean there.
//
// LoadTask and Resolve complete a TextTask for roles without MuJoCo. Pure but for reading files; thread-safe; they
// block on the disk and while the model compiles. A CompiledTask is immutable.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_COMPILED_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_COMPILED_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tasks/mujoco.h"
#include "common/tasks/task.h"
#include "common/tasks/text/expression.h"
#include "common/tasks/text/mujoco_actuation.h"
#include "common/tasks/text/mujoco_episode.h"
#include "common/tasks/text/mujoco_known_columns.h"
#include "common/tasks/text/mujoco_signals.h"
#include "common/tasks/text/mujoco_terms.h"
#include "datacom/v1/task.pb.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::text {

// Reads a task file (task_file.h), compiles the model, checks the definition and fills `resolved`. INVALID_ARGUMENT
// naming the file, where it can the line and the column, the field, and what there is to choose from.
absl::StatusOr<v1::TextTask> LoadTask(const std::string& path);

// The same for a TextTask at hand; messages begin with the field.
absl::Status Resolve(v1::TextTask* task);

// If `task` is the path of a task file: loads the file into the options and replaces the path by the task's name. A
// relative path belongs to the working directory, or else to `folder`. Does nothing otherwise.
absl::Status LoadTaskOf(const std::string& folder, std::string* task, v1::TaskOptions* options);

// One environment of a resolved task (mujoco_task.cc). INVALID_ARGUMENT as CompiledTask::Make.
absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options);

// Compiles the files of a task. INVALID_ARGUMENT "model: why".
absl::StatusOr<MujocoModel> CompileFiles(const v1::TextTask& task);

struct CompiledTask {
  // INVALID_ARGUMENT "field: why".
  static absl::StatusOr<std::shared_ptr<const CompiledTask>> Make(const v1::TextTask& task);
  // The one that this process already has, or a new one. Holds it only as long as a caller does.
  static absl::StatusOr<std::shared_ptr<const CompiledTask>> Shared(const v1::TextTask& task);

  int action_at() const { return observation.size() + extra.size(); }  // in the numbers of the expressions
  int time_at() const { return action_at() + static_cast<int>(actuation->channels().size()); }
  int command_at() const { return time_at() + 1; }
  int before_at() const { return command_at() + definition.command_size() + definition.constant_size(); }

  v1::TaskDefinition definition;
  MujocoModel model, unconstrained;
  Signals observation, extra, uncontrolled;  // observation: its measured entries
  bool external_forces = false;              // of one of the three (Signals::external_forces)
  std::optional<Actuation> actuation;
  std::optional<StartRules> start;
  StateJoints joints;
  KnownOfTask known;
  // Numbers of the expressions: observation, extra, action, time, commands, constants, then observation, extra and
  // action of one control step earlier; and the start values, which matter for constants.
  std::vector<std::string> names;
  std::vector<double> initial;
};

// The name of a command in expressions and among the start values.
inline std::string CommandKey(const v1::Command& command) { return "command." + command.name(); }

// The expressions of a definition over the numbers of a CompiledTask.
struct Objective {
  // `values` [names] must outlive it. INVALID_ARGUMENT "field: column N: why".
  static absl::StatusOr<Objective> Make(const CompiledTask& task, double* values);

  double Reward() const;

  Expression reward;
  std::optional<v1::ValueRange> reward_range;  // the reward is clipped to it
  std::vector<Expression> costs;
  std::vector<double> weights;  // of the costs: the task's cost is the largest weight * cost
  std::vector<Expression> logs;
  std::optional<Expression> absorbing, truncated, success;
};

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_COMPILED_H_
// SPDX-License-Identifier: Apache-2.0
