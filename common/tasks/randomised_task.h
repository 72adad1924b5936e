// Domain randomisation (proto Randomisation): a decorator that draws a task's physics, action delay and observation
// noise at every reset. The run's experiment.textproto records the ranges, which actors, evaluators, `eval` and
// `rollout` all use (`--set task_options.randomisation...` changes them for one evaluation).
//
// Each quantity has its own stream, a named child of the episode's: drawing one changes neither the others nor the
// task's start, and an episode remains a function of its stream and its actions. The policy's observation is noisy and
// its action is delayed; rewards and costs belong to the true state, and the rows hold the commanded action. Without
// the option MakeTask omits the decorator.
#ifndef DATACOM_COMMON_TASKS_RANDOMISED_TASK_H_
#define DATACOM_COMMON_TASKS_RANDOMISED_TASK_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom {

// Not thread-safe; owns the task. Steps allocate nothing; a reset allocates if the task's ScalePhysics does.
class RandomisedTask : public Task {
 public:
  RandomisedTask(std::unique_ptr<Task> task, const v1::Randomisation& ranges);

  const TaskSpec& spec() const override { return task_->spec(); }
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override;
  StepResult Step(const double* action, double* observation) override;
  double Cost() const override { return task_->Cost(); }
  bool Success() const override { return task_->Success(); }
  void ScalePhysics(const PhysicsScale& scale) override { base_ = scale; }  // multiplied by the drawn factors
  const Simulation* simulation() const override { return task_->simulation(); }
  absl::Status status() const override { return task_->status(); }

 private:
  void Draw(const RandomStream& episode);
  // Stores `action` and returns the one commanded delay_ steps ago; zeros before the first.
  const double* Delayed(const double* action);
  void Disturb(double* observation);

  const std::unique_ptr<Task> task_;
  const v1::Randomisation ranges_;
  PhysicsScale base_;
  std::vector<double> commanded_;  // ring of capacity_ actions, [capacity_, action_dim]
  int capacity_ = 1, slot_ = 0, delay_ = 0;
  double deviation_ = 0;  // of the observation noise
  RandomStream noise_{0};
};

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_RANDOMISED_TASK_H_
// SPDX-License-Identifier: Apache-2.0
