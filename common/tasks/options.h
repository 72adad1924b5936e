// Checks a task's options (proto TaskOptions). Pure functions; thread-safe.
#ifndef DATACOM_COMMON_TASKS_OPTIONS_H_
#define DATACOM_COMMON_TASKS_OPTIONS_H_

#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "datacom/v1/task_options.pb.h"

namespace datacom {

// Every task has `horizon`, `randomisation` and `action_repeat`; `own` names the other fields that this task has.
// INVALID_ARGUMENT, naming the first set field that the task does not have, and the fields that it has.
absl::Status RejectOtherOptions(absl::string_view task, const v1::TaskOptions& options,
                                std::initializer_list<absl::string_view> own);

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_OPTIONS_H_
// SPDX-License-Identifier: Apache-2.0
