// A Python process that steps the environments of this process, through shared memory (host.py). It runs the
// interpreter that the environment variable DATACOM_PYTHON names, "python3" for one on the PATH; without the variable
// no Python is started, so that a peer that sends an experiment cannot choose to run code. Modules are found as Python
// finds them: in the working directory and on PYTHONPATH.
//
// All slots share one process, which works on one slot after the other. Slots that wait when the first of them needs
// its result go to Python together: stepping n environments wakes each side once.
//
// Thread-safe. Finish blocks until Python has answered; it logs what it waits for. The Python process lives as long as
// this process, because importing takes seconds; environments that are given back serve whoever opens the next.
#ifndef DATACOM_COMMON_TASKS_PYTHON_PYTHON_HOST_H_
#define DATACOM_COMMON_TASKS_PYTHON_PYTHON_HOST_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/tasks/python/python_model.h"
#include "datacom/v1/python_task.pb.h"

namespace datacom::python {

// Asks the environment MODULE:CALLABLE for its facts. INVALID_ARGUMENT, with what it has to change; INTERNAL when it
// raises. Blocks until Python has imported, made and tried it.
absl::StatusOr<v1::PythonTask> AskEnvironment(const std::string& environment);

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
    pid_t pid() const { return pid_; }

   private:
    Child() = default;
    absl::Status Gone() const;  // how the child ended
    pid_t pid_ = -1;
    int socket_ = -1;
    std::vector<char> answer_;
  };

  // The process's host of this environment; a new one if there is none, or if it has failed.
  static absl::StatusOr<std::shared_ptr<PythonHost>> Shared(const v1::PythonTask& task);
  ~PythonHost();

  // The slot of an environment that nobody uses; RESOURCE_EXHAUSTED when there are too many.
  absl::StatusOr<uint32_t> Open();
  void GiveBack(uint32_t slot);
  // Numbers of a slot: [head | action | observation], float64. Only between Finish and the next Begin.
  double* slot(uint32_t slot) { return memory_ + static_cast<size_t>(slot) * stride_; }
  static int action_at() { return kSlotHead; }
  int observation_at() const { return action_at() + action_; }
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

}  // namespace datacom::python

#endif  // DATACOM_COMMON_TASKS_PYTHON_PYTHON_HOST_H_
// SPDX-License-Identifier: Apache-2.0
