// The simulated side of a task that is a Python environment: one environment, which the Python process of this process
// steps (python_host.h).
//
// Not thread-safe; owns its environment. Steps and resets block until Python has answered; steps allocate nothing here.
// An episode is a function of its stream and actions as far as the environment is one of seed and actions.
#ifndef DATACOM_COMMON_TASKS_PYTHON_PYTHON_TASK_H_
#define DATACOM_COMMON_TASKS_PYTHON_PYTHON_TASK_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tasks/python/python_host.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::python {

// If `task` is "python:MODULE:CALLABLE": asks the environment for its facts, puts them into the options and replaces
// `task` by the task's name. INVALID_ARGUMENT and INTERNAL as AskEnvironment. Does nothing otherwise.
absl::Status LoadTaskOf(std::string* task, v1::TaskOptions* options);

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options);

class PythonTask : public Task {
 public:
  PythonTask(TaskSpec spec, const v1::PythonTask& task, std::shared_ptr<PythonHost> host, uint32_t slot);
  ~PythonTask() override { host_->GiveBack(slot_); }

  const TaskSpec& spec() const override { return spec_; }
  void Reset(RandomStream* stream, double* observation) override;
  // The environment has no start values: INVALID_ARGUMENT for any.
  absl::Status ResetTo(const std::map<std::string, double>& init, RandomStream* stream, double* observation) override;
  void Prepare(const double* action) override;
  StepResult Step(const double* action, double* observation) override;
  double Cost() const override { return cost_; }
  bool Success() const override { return success_; }
  void ScalePhysics(const PhysicsScale&) override {}  // MakeModel refuses the options that would call it
  const Simulation* simulation() const override { return nullptr; }
  absl::Status status() const override { return status_; }

 private:
  void Finish(double* observation);
  void RescaleModel(double* observation) const;  // f and G belong to actions of -1 to 1

  const TaskSpec spec_;
  const std::shared_ptr<PythonHost> host_;
  const uint32_t slot_;
  double* const numbers_;  // of the slot
  const int q_, drift_at_;
  bool rescales_ = false;
  std::vector<double> low_, high_, half_, middle_;  // [action] of the environment's bounds
  bool prepared_ = false;
  bool finite_ = true;  // the prepared action; another never reaches the environment
  double cost_ = 0;
  bool success_ = false;
  absl::Status status_;
};

}  // namespace datacom::python

#endif  // DATACOM_COMMON_TASKS_PYTHON_PYTHON_TASK_H_
// SPDX-License-Identifier: Apache-2.0
