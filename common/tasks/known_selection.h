// Which rows of a task's known constraints an experiment or a snapshot names. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_TASKS_KNOWN_SELECTION_H_
#define DATACOM_COMMON_TASKS_KNOWN_SELECTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tasks/task.h"

namespace datacom {
namespace v1 {
class Constraints;
}

// Indices of the rows that `names` (a set of rows and groups) selects, each once, in the task's order. INVALID_ARGUMENT
// for a name that is neither; the message lists the names that exist.
absl::StatusOr<std::vector<int>> SelectKnownRows(const TaskModel& model, const std::vector<std::string>& names);
// The rows of an experiment's constraints.known; messages begin with that field's name.
absl::StatusOr<std::vector<int>> SelectKnownRows(const TaskModel& model, const v1::Constraints& constraints);

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_KNOWN_SELECTION_H_
// SPDX-License-Identifier: Apache-2.0
