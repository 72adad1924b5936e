// Which rows of a task's known constraints an experiment or a snapshot names. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_TASKS_KNOWN_SELECTION_H_
#define DATACOM_COMMON_TASKS_KNOWN_SELECTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom {

// `names` of rows or of groups, a set -> indices of the rows, each once, in the task's order. INVALID_ARGUMENT naming
// the name that is neither, and those there are.
absl::StatusOr<std::vector<int>> SelectKnownRows(const TaskModel& model, const std::vector<std::string>& names);
// Those of an experiment's constraints.known, which the message then begins with.
absl::StatusOr<std::vector<int>> SelectKnownRows(const TaskModel& model, const v1::Constraints& constraints);

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_KNOWN_SELECTION_H_
