// Task::Step that also reports a step as invalid when reward, cost or observation is not finite in float32, so that no
// row, episode or network sees such a value. As thread-safe as the task; allocates nothing itself.
#ifndef DATACOM_ACTOR_CHECKED_STEP_H_
#define DATACOM_ACTOR_CHECKED_STEP_H_

#include <cmath>

#include "common/tasks/task.h"

namespace datacom::actor {

inline StepResult CheckedStep(Task* task, const double* action, double* observation) {
  StepResult result = task->Step(action, observation);
  const auto finite = [](double value) { return std::isfinite(static_cast<float>(value)); };
  result.valid = result.valid && finite(result.reward) && finite(result.cost);
  const int dim = task->spec().obs_dim;
  for (int i = 0; i < dim; ++i) result.valid = result.valid && finite(observation[i]);
  return result;
}

}  // namespace datacom::actor

#endif  // DATACOM_ACTOR_CHECKED_STEP_H_
