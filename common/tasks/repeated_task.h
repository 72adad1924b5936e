// Action repeat (proto TaskOptions.action_repeat): a decorator for a policy that decides once in several control steps.
//
// One Step is a decision: action_repeat steps of the task with the same action. Reward: the sum. Cost: the largest, and
// so is each named cost in the observation. A quantity that the task logs: the mean. A step that is absorbing or
// invalid or whose cost is NaN is the decision's last. A decision never goes beyond the task's horizon. In the spec,
// steps are decisions: `horizon` is their number per episode, `control_dt` their duration. Without the option MakeTask
// omits the decorator.
#ifndef DATACOM_COMMON_TASKS_REPEATED_TASK_H_
#define DATACOM_COMMON_TASKS_REPEATED_TASK_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/tasks/task.h"

namespace datacom {

// The spec of a task whose decisions take `repeat` control steps. A pure function.
inline TaskSpec RepeatedSpec(TaskSpec spec, int repeat) {
  spec.horizon = (spec.horizon + repeat - 1) / repeat;
  spec.control_dt *= repeat;
  if (spec.rewards) spec.rewards = RepeatedRewards(*spec.rewards, repeat);
  return spec;
}

// Not thread-safe; owns the task. Allocates only what the task does.
class RepeatedTask : public Task {
 public:
  // REQUIRES repeat >= 1.
  RepeatedTask(std::unique_ptr<Task> task, int repeat);

  const TaskSpec& spec() const override { return spec_; }
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override;
  StepResult Step(const double* action, double* observation) override;
  double Cost() const override { return cost_; }
  bool Success() const override { return task_->Success(); }
  void ScalePhysics(const PhysicsScale& scale) override { task_->ScalePhysics(scale); }
  void Prepare(const double* action) override { task_->Prepare(action); }
  const Simulation* simulation() const override { return task_->simulation(); }
  absl::Status status() const override { return task_->status(); }

 private:
  void Begin();

  const std::unique_ptr<Task> task_;
  const int repeat_;
  const TaskSpec spec_;
  int left_ = 0;               // control steps up to the horizon; 0 beyond it
  double cost_ = 0;            // of the last decision, or of the start
  std::vector<double> named_;  // costs of the decision so far
  std::vector<double> logs_;   // sums of what the task logs over the decision so far
};

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_REPEATED_TASK_H_
// SPDX-License-Identifier: Apache-2.0
