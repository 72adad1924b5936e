#include "common/tasks/known_selection.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom {

absl::StatusOr<std::vector<int>> SelectKnownRows(const TaskModel& model, const std::vector<std::string>& names) {
  std::vector<int> selected;
  if (names.empty()) return selected;
  if (model.known_constraints == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("known constraint \"", names.front(), "\": task ", model.spec.name, " has no known constraints"));
  }
  const std::vector<std::string>&rows = model.known_constraints->names(), &groups = model.known_constraints->groups();
  for (const std::string& name : names) {
    bool found = false;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (name != rows[i] && name != groups[i]) continue;
      found = true;
      selected.push_back(static_cast<int>(i));
    }
    if (found) continue;
    std::vector<std::string> known;  // rows of a group are adjacent
    std::unique_copy(groups.begin(), groups.end(), std::back_inserter(known));
    return absl::InvalidArgumentError(absl::StrCat("known constraint \"", name, "\": task ", model.spec.name,
                                                   " has the groups ", absl::StrJoin(known, ", "), " and the rows ",
                                                   absl::StrJoin(rows, ", ")));
  }
  std::sort(selected.begin(), selected.end());
  selected.erase(std::unique(selected.begin(), selected.end()), selected.end());
  return selected;
}

absl::StatusOr<std::vector<int>> SelectKnownRows(const TaskModel& model, const v1::Constraints& constraints) {
  absl::StatusOr<std::vector<int>> selected =
      SelectKnownRows(model, std::vector<std::string>(constraints.known().begin(), constraints.known().end()));
  if (!selected.ok()) return Annotate(selected.status(), "constraints.known");
  return selected;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
