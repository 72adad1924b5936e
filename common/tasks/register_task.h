// Registers a task of a folder common/tasks/<name>/: dynamics.cc its model, task.cc its simulator. The last lines of
// these files are:
//
//   const RegisterTaskModel kRegistered("cartpole", &MakeModel);
//   const RegisterTask kRegistered("cartpole", &MakeTask);
//
// They run before main; a name that is registered twice ends the program. The linker must keep the files: they are
// linked as objects, not from archives (CMakeLists.txt).
#ifndef DATACOM_COMMON_TASKS_REGISTER_TASK_H_
#define DATACOM_COMMON_TASKS_REGISTER_TASK_H_

#include <initializer_list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tasks/task.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom {

// Every task has `horizon`, `randomisation` and `action_repeat`; `own` names the other fields that this task has.
// INVALID_ARGUMENT, naming the first set field that the task does not have, and the fields that it has.
absl::Status RejectOtherOptions(absl::string_view task, const v1::TaskOptions& options,
                                std::initializer_list<absl::string_view> own);

struct RegisterTaskModel {
  RegisterTaskModel(const std::string& name, absl::StatusOr<TaskModel> (*make)(const v1::TaskOptions& options));
};

struct RegisterTask {
  RegisterTask(const std::string& name, absl::StatusOr<std::unique_ptr<Task>> (*make)(const v1::TaskOptions& options));
};

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_REGISTER_TASK_H_
// SPDX-License-Identifier: Apache-2.0
