// Parses user-supplied actions and start values, finds tasks with options, and plays actions. Functions; they read the
// files that they are given. INVALID_ARGUMENT (NOT_FOUND for a file), naming the file, row, column or value.
#ifndef DATACOM_DEPLOY_TOOLS_PLAY_ACTIONS_H_
#define DATACOM_DEPLOY_TOOLS_PLAY_ACTIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actor/episode_player.h"
#include "common/acting/acting_rule.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::tools {

// Writes the action [action_dim] of step `step` (from 0) for the observation; returns false at the end.
using ActionSource = std::function<bool(uint64_t step, const double* observation, double* action)>;
// The rows of a CSV file with columns action0.. | a0.. | action | a_v,a_w. Skips rows whose action cells are all empty
// and, if there is a column `step`, step 0: the start, which no action led to.
absl::StatusOr<ActionSource> RecordedActions(const std::string& path, const TaskSpec& spec);

// Parses "x=-1,theta=0.1". An empty text gives an empty map.
absl::StatusOr<std::map<std::string, double>> ParseInit(const std::string& text);

// A task of the register or of a task file.
struct NamedTask {
  std::string name;
  v1::TaskOptions options;
};
// The task of this name or task file, with assignments "task_options.NAME=value" applied.
absl::StatusOr<NamedTask> FindTask(const std::string& task, const std::vector<std::string>& set);

// Called for the start (action null) and for every state that is reached, with the action [action_dim] that led there.
using StateWatcher = std::function<absl::Status(const actor::EpisodeState& state, const double* action)>;
// Plays actions from a start (Task::ResetTo) until the source ends or a step is invalid; if `stop_at_end`, also only
// until the task ends the episode. An error of the watcher ends it and is returned.
absl::Status PlayActions(const ActionSource& source, const std::map<std::string, double>& init, bool stop_at_end,
                         RandomStream* stream, const StateWatcher& watcher, Task* task);

// Untrained policies to compare learned ones with: zeros, random, and the scripted policies of a task.
// Thread-safe; nothing blocks.
struct UntrainedPolicy {
  std::string title;  // its name and what it does, one line
  std::unique_ptr<ActingRule> rule;
};

// `name`: "zeros"; "random", uniform within the action's bounds and independent at every step; "scripted", the task's
// first scripted policy; or the name of a scripted policy. The rule sees float32 observations, as learned policies do.
// INVALID_ARGUMENT, naming the task and its policies.
absl::StatusOr<UntrainedPolicy> MakeUntrainedPolicy(const std::string& name, const TaskModel& model);
// Its actions in an episode of the task, up to the horizon.
ActionSource PolicyActions(UntrainedPolicy policy, const TaskSpec& spec, uint64_t seed);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_PLAY_ACTIONS_H_
// SPDX-License-Identifier: Apache-2.0
