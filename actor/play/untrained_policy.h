// Policies that nobody trained, to hold learned ones against: zeros, random, and the scripted ones of a task.
#ifndef DATACOM_ACTOR_PLAY_UNTRAINED_POLICY_H_
#define DATACOM_ACTOR_PLAY_UNTRAINED_POLICY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/acting/acting_rule.h"
#include "common/tasks/task.h"

namespace datacom {

struct UntrainedPolicy {
  std::string title;  // its name and what it does, one line
  std::unique_ptr<ActingRule> rule;
};

// `name`: "zeros"; "random", uniform within the action's bounds, drawn anew at every step; "scripted", the task's first
// scripted controller; or the name of one of them. The rule sees float32 observations, as learned policies do.
// INVALID_ARGUMENT naming the task and what it has.
absl::StatusOr<UntrainedPolicy> MakeUntrainedPolicy(const std::string& name, const TaskModel& model);

}  // namespace datacom

#endif  // DATACOM_ACTOR_PLAY_UNTRAINED_POLICY_H_
