// Tasks that come with an experiment. Blocks: reads files and compiles a model, or starts Python.
#ifndef DATACOM_COMMON_TASKS_LOAD_TASK_H_
#define DATACOM_COMMON_TASKS_LOAD_TASK_H_

#include <string>

#include "absl/status/status.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom {

// If `task` is the path of a task file (text/task_file.h) or "python:MODULE:CALLABLE" (python/python_task.h): puts the
// task into the options and replaces `task` by its name. A relative path belongs to the working directory, or else to
// `folder`. Does nothing for other names. INVALID_ARGUMENT with what is wrong.
absl::Status LoadTaskOf(const std::string& folder, std::string* task, v1::TaskOptions* options);

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_LOAD_TASK_H_
// SPDX-License-Identifier: Apache-2.0
