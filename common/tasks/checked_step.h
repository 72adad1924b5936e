// Task::Step that also reports a step as invalid when reward, cost or observation is larger than kLargestValue or not
// finite, so that no row, episode or network sees such a value. As thread-safe as the task; allocates nothing itself.
#ifndef DATACOM_COMMON_TASKS_CHECKED_STEP_H_
#define DATACOM_COMMON_TASKS_CHECKED_STEP_H_

#include <cmath>

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

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_CHECKED_STEP_H_
// SPDX-License-Identifier: Apache-2.0
