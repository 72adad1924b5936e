// Task::Step as those call it who keep what it returns: a step with anything that is not finite in float32 is invalid,
// too, so that no row, episode or network ever sees it. Thread-safe; allocates nothing.
#ifndef DATACOM_ACTOR_CHECKED_STEP_H_
#define DATACOM_ACTOR_CHECKED_STEP_H_

#include <cmath>

#include "common/tasks/task.h"

namespace datacom {

inline StepResult CheckedStep(Task* task, const double* action, double* observation) {
  StepResult result = task->Step(action, observation);
  const auto finite = [](double value) { return std::isfinite(static_cast<float>(value)); };
  result.valid = result.valid && finite(result.reward) && finite(result.cost);
  const int dim = task->spec().obs_dim;
  for (int i = 0; i < dim; ++i) result.valid = result.valid && finite(observation[i]);
  return result;
}

}  // namespace datacom

#endif  // DATACOM_ACTOR_CHECKED_STEP_H_
