// The task that travels in the options of an experiment, because no program has it: a text file or a Python
// environment. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_CONFIG_CARRIED_TASK_H_
#define DATACOM_COMMON_CONFIG_CARRIED_TASK_H_

#include <string>

#include "datacom/v1/python_task.pb.h"
#include "datacom/v1/task.pb.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom {

// Its name; empty if the options carry none.
inline std::string CarriedTask(const v1::TaskOptions& options) {
  if (options.HasExtension(v1::text_task)) return options.GetExtension(v1::text_task).definition().name();
  if (options.HasExtension(v1::python_task)) return options.GetExtension(v1::python_task).name();
  return "";
}

// Whether the task can say that an episode succeeded: a text task can only if its file defines it.
inline bool DefinesSuccess(const v1::TaskOptions& options) {
  return !options.HasExtension(v1::text_task) || options.GetExtension(v1::text_task).definition().has_success();
}

}  // namespace datacom

#endif  // DATACOM_COMMON_CONFIG_CARRIED_TASK_H_
// SPDX-License-Identifier: Apache-2.0
