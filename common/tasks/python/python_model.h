// The static side of a task that is a Python environment: specification and a control-affine model that reads its terms
// from the row. Needs no Python.
//
// An observation of such a task is [policy's observation | q | x | x_dot | f | G, row-major | named costs]. The
// environment evaluates the numbers after the policy's observation; rows hold them as float32. Without a model of its
// own (q and x of size 0) only the named costs follow. Actions are -1 to 1, whatever bounds the environment has; f and
// G in rows belong to such actions.
//
// Pure functions but CheckNamed; the model is immutable and thread-safe.
#ifndef DATACOM_COMMON_TASKS_PYTHON_PYTHON_MODEL_H_
#define DATACOM_COMMON_TASKS_PYTHON_PYTHON_MODEL_H_

#include "absl/status/statusor.h"
#include "common/safety/control_affine.h"
#include "common/tasks/task.h"
#include "datacom/v1/python_task.pb.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom::python {

// Beginning of a task's name that stands for a Python environment: "python:MODULE:CALLABLE".
inline constexpr char kPythonTask[] = "python:";

// Names the environments whose code the user lets run: MODULE:CALLABLE, separated by ",". `datacom --python` sets it.
inline constexpr char kNamedEnvironments[] = "DATACOM_PYTHON_TASK";

// INVALID_ARGUMENT unless the user has named the environment: an experiment, a run folder or a peer cannot choose code
// to run. Reads kNamedEnvironments.
absl::Status CheckNamed(const std::string& environment);

class PythonDynamics : public ControlAffine {
 public:
  explicit PythonDynamics(const v1::PythonTask& task);
  ControlAffineDims dims() const override { return dims_; }
  void Evaluate(const double* obs, const ControlAffineOut& out) const override;

 private:
  ControlAffineDims dims_;
  int at_ = 0;  // where q begins
};

inline constexpr int kSlotHead = 8;  // numbers of an environment's slot before the action (host.py, SLOT_HEAD)

// How many environments a process steps at most: a number of slots that fit into 1 GiB, of which only those in use take
// memory.
int MostEnvironments(const v1::PythonTask& task);

// INVALID_ARGUMENT for facts that do not fit together, for options that no Python environment has, and without a
// horizon.
absl::StatusOr<TaskModel> MakeModel(const v1::TaskOptions& options);

}  // namespace datacom::python

#endif  // DATACOM_COMMON_TASKS_PYTHON_PYTHON_MODEL_H_
// SPDX-License-Identifier: Apache-2.0
