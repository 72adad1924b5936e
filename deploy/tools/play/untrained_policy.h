// Untrained policies to compare learned ones with: zeros, random, and the scripted policies of a task.
// Thread-safe; nothing blocks.
#ifndef DATACOM_DEPLOY_TOOLS_PLAY_UNTRAINED_POLICY_H_
#define DATACOM_DEPLOY_TOOLS_PLAY_UNTRAINED_POLICY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/acting/acting_rule.h"
#include "common/tasks/task.h"

namespace datacom::tools {

struct UntrainedPolicy {
  std::string title;  // its name and what it does, one line
  std::unique_ptr<ActingRule> rule;
};

// `name`: "zeros"; "random", uniform within the action's bounds and independent at every step; "scripted", the task's
// first scripted policy; or the name of a scripted policy. The rule sees float32 observations, as learned policies do.
// INVALID_ARGUMENT, naming the task and its policies.
absl::StatusOr<UntrainedPolicy> MakeUntrainedPolicy(const std::string& name, const TaskModel& model);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_PLAY_UNTRAINED_POLICY_H_
// SPDX-License-Identifier: Apache-2.0
