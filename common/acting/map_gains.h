// Parts of the rules that filter with a safe map: the gains in their snapshots, and the tasks that a map can act in.
// Pure functions; thread-safe.
#ifndef DATACOM_COMMON_ACTING_MAP_GAINS_H_
#define DATACOM_COMMON_ACTING_MAP_GAINS_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/acting/snapshot_form.h"
#include "common/base/status.h"
#include "common/safety/safe_map.h"
#include "common/tasks/task.h"

namespace datacom {

inline void DeclareGains(SnapshotForm* form) {
  form->scalars.push_back({"atacom_gain", /*example=*/60, /*above=*/0});
  form->scalars.push_back({"slack_beta", /*example=*/3, /*above=*/0});
}

inline SafeMapGains GainsOf(const Snapshot& snapshot) {
  return {ScalarOf(snapshot, "atacom_gain"), ScalarOf(snapshot, "slack_beta")};
}

// A Python environment may have no control-affine model; that of a text task may not hold.
inline absl::Status CheckHasModel(const TaskModel& model) {
  if (!model.without_map.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("task ", model.spec.name, " has no f and G, which this algorithm ", "needs: ", model.without_map));
  }
  if (model.dynamics->dims().q > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("task ", model.spec.name, " has no control-affine model (q, f, G), which this algorithm needs"));
}

inline absl::Status CheckTaskOfMap(const TaskModel& model) {
  RETURN_IF_ERROR(CheckHasModel(model));
  const int actions = model.dynamics->dims().action;
  if (actions <= kMaxSafeMapActions) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("task ", model.spec.name, " has ", actions,
                                                 " actions, the safe map takes at most ", kMaxSafeMapActions));
}

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_MAP_GAINS_H_
// SPDX-License-Identifier: Apache-2.0
