// Task::Step that also reports a step as invalid when reward, cost or observation is larger than kLargestValue or not
// finite, so that no row, episode or network sees such a value. As thread-safe as the task; allocates nothing itself.
#ifndef DATACOM_COMMON_TASKS_CHECKED_STEP_H_
#define DATACOM_COMMON_TASKS_CHECKED_STEP_H_

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/tasks/task.h"
#include "common/transitions/check_columns.h"

namespace datacom {

inline StepResult CheckedStep(Task* task, const double* action, double* observation) {
  StepResult result = task->Step(action, observation);
  const auto sane = [](double value) { return std::abs(value) <= kLargestValue; };
  result.valid = result.valid && sane(result.reward) && sane(result.cost);
  const int dim = task->spec().obs_dim;
  for (int i = 0; i < dim; ++i) result.valid = result.valid && sane(observation[i]);
  return result;
}

// Why CheckedStep called a step invalid, for messages: "cost speed is not finite or above 1e+18".
inline std::string WhatIsInvalid(const TaskSpec& spec, const StepResult& result, const double* observation) {
  const auto wrong = [](double value) { return !(std::abs(value) <= kLargestValue); };
  const auto say = [](const std::string& name) {
    return absl::StrCat(name, " is not finite or above ", kLargestValue);
  };
  for (size_t i = 0; i < spec.cost_names.size(); ++i) {
    if (wrong(observation[spec.costs_at + i])) return say(absl::StrCat("cost ", spec.cost_names[i]));
  }
  const bool named = spec.observation_names.size() == static_cast<size_t>(spec.obs_dim);
  for (int i = 0; i < spec.obs_dim; ++i) {
    if (wrong(observation[i])) {
      return say(
          absl::StrCat("number ", i, " of the observation", named ? ", " : "", named ? spec.observation_names[i] : ""));
    }
  }
  if (wrong(result.reward)) return say("the reward");
  if (wrong(result.cost)) return say(spec.only_cost.empty() ? "the cost" : absl::StrCat("cost ", spec.only_cost));
  return "the simulator reports a bad state or a full buffer";
}

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_CHECKED_STEP_H_
// SPDX-License-Identifier: Apache-2.0
