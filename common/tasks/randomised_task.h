// Domain randomisation (proto Randomisation): any task, its physics, action delay and observation noise drawn anew at
// every reset. The run's experiment.textproto records the ranges; actors, evaluators, `eval` and `rollout` all obey
// them
// (`--set task_options.randomisation...` changes them for one evaluation).
//
// Each quantity has its own stream, named below the episode's: whether one is drawn changes neither the others nor the
// task's start, and an episode stays a function of its stream and its actions. What the policy observes is disturbed
// and what it commands comes late; rewards and costs are those of the true state, and the rows keep the commanded
// action. Without the option MakeTask leaves the decorator out.
#ifndef DATACOM_COMMON_TASKS_RANDOMISED_TASK_H_
#define DATACOM_COMMON_TASKS_RANDOMISED_TASK_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom {

// Not thread-safe; owns the task. Steps allocate nothing; a reset does where the task's ScalePhysics does.
class RandomisedTask : public Task {
 public:
  RandomisedTask(std::unique_ptr<Task> task, const v1::Randomisation& ranges);

  const TaskSpec& spec() const override { return task_->spec(); }
  void Reset(RandomStream* stream, double* observation) override;
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override;
  StepResult Step(const double* action, double* observation) override;
  double Cost() const override { return task_->Cost(); }
  bool Success() const override { return task_->Success(); }
  void ScalePhysics(const PhysicsScale& scale) override { base_ = scale; }  // times what is drawn
  const Simulation* simulation() const override { return task_->simulation(); }

 private:
  void Draw(const RandomStream& episode);
  // The action commanded delay_ steps ago, zeros before there was one.
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
