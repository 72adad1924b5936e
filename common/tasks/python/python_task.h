// The simulated side of a task that is a Python environment: one environment, which the Python process of this process
// steps (PythonHost).
//
// Not thread-safe; owns its environment. Steps and resets block until Python has answered; steps allocate nothing here.
// An episode is a function of its stream and actions as far as the environment is one of seed and actions.
#ifndef DATACOM_COMMON_TASKS_PYTHON_PYTHON_TASK_H_
#define DATACOM_COMMON_TASKS_PYTHON_PYTHON_TASK_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/tasks/python/python_model.h"
#include "common/tasks/task.h"
#include "datacom/v1/python_task.pb.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::python {

// Asks the environment MODULE:CALLABLE for its facts, with_model: also for its control-affine model. INVALID_ARGUMENT,
// with what it has to change; INTERNAL when it raises. Blocks until Python has imported, made and tried it.
absl::StatusOr<v1::PythonTask> AskEnvironment(const std::string& environment, bool with_model);

// A Python process that steps the environments of this process, through shared memory (host.py). It runs the
// interpreter that the environment variable DATACOM_PYTHON names, "python3" for one on the PATH; without the variable,
// and for an environment that the user has not named (CheckNamed), no Python is started. Modules are found as Python
// finds them: in the working directory and on PYTHONPATH.
//
// All slots share one process, which works on one slot after the other. Slots that wait when the first of them needs
// its result go to Python together: stepping n environments wakes each side once.
//
// Thread-safe. Finish blocks until Python has answered; it logs what it waits for. The Python process lives as long as
// this process, because importing takes seconds; environments that are given back serve whoever opens the next.
class PythonHost {
 public:
  enum Operation { kMake = 1, kReset = 2, kStep = 3 };

  // A child process and its end of the conversation. Closing the socket ends the child.
  class Child {
   public:
    static absl::StatusOr<std::unique_ptr<Child>> Start(std::vector<std::string> arguments, int memory);
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    absl::Status Send(const void* message, size_t bytes);
    // What follows the "k" of the answer. Logs each `kPatience` of waiting "for `what`".
    absl::StatusOr<std::string> Receive(const std::string& what);
    // The facts of the environment, which it sends first.
    absl::StatusOr<v1::PythonTask> ReceiveFacts(const std::string& environment);
    pid_t pid() const { return pid_; }

   private:
    Child() = default;
    absl::Status Gone() const;  // how the child ended
    pid_t pid_ = -1;
    int socket_ = -1;
    std::vector<char> answer_;
  };

  // The process's host of this environment; a new one if there is none, or if it has failed. INVALID_ARGUMENT if the
  // environment is not the one of the task (CheckSame).
  static absl::StatusOr<std::shared_ptr<PythonHost>> Shared(const v1::PythonTask& task);
  ~PythonHost();

  // The slot of an environment that nobody uses; RESOURCE_EXHAUSTED when there are too many.
  absl::StatusOr<uint32_t> Open();
  void GiveBack(uint32_t slot);
  // Numbers of a slot: [head | action | observation], float64. Only between Finish and the next Begin.
  double* slot(uint32_t slot) { return memory_ + static_cast<size_t>(slot) * stride_; }
  int observation_at() const { return kSlotHead + action_; }
  // Asks for an operation, which starts with the next Finish of any slot.
  void Begin(uint32_t slot, Operation operation);
  // Waits for the slot's operation. INVALID_ARGUMENT or INTERNAL with Python's words; from then on every call fails.
  absl::Status Finish(uint32_t slot);
  absl::Status status();  // of the last Finish

 private:
  PythonHost(const v1::PythonTask& task, int slots);
  absl::Status Start(const v1::PythonTask& task, int observation);
  absl::Status Exchange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string environment_;
  const int action_;
  const int slots_;
  int stride_ = 0;
  double* memory_ = nullptr;  // [slots, stride]
  Mutex mutex_;
  std::unique_ptr<Child> child_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> waiting_ ABSL_GUARDED_BY(mutex_);  // begun, not sent
  std::vector<uint32_t> free_ ABSL_GUARDED_BY(mutex_);     // slots with environments that nobody uses
  int made_ ABSL_GUARDED_BY(mutex_) = 0;                   // slots that have had an environment: the first ones
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// If `task` is "python:MODULE:CALLABLE": asks the environment for its facts, puts them into the options and replaces
// `task` by the task's name. With python_task.without_model set it does not ask for the model. INVALID_ARGUMENT and
// INTERNAL as AskEnvironment. Does nothing otherwise.
absl::Status LoadTaskOf(std::string* task, v1::TaskOptions* options);

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const v1::TaskOptions& options);

class PythonTask : public Task {
 public:
  PythonTask(TaskSpec spec, const v1::PythonTask& task, std::shared_ptr<PythonHost> host, uint32_t slot);
  ~PythonTask() override { host_->GiveBack(slot_); }

  const TaskSpec& spec() const override { return spec_; }
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
