// The known constraints of a task file (proto KnownConstraint): what their names mean in the compiled model. Pure
// function; thread-safe.
#ifndef DATACOM_COMMON_TASKS_TEXT_MUJOCO_KNOWN_H_
#define DATACOM_COMMON_TASKS_TEXT_MUJOCO_KNOWN_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/tasks/text/mujoco_geometry.h"
#include "common/tasks/text/mujoco_terms.h"
#include "datacom/v1/task.pb.h"
#include "mujoco/mujoco.h"

namespace datacom::text {

struct KnownOfTask {
  // `first_order`: q has only positions. INVALID_ARGUMENT "known[i].field: why".
  static absl::StatusOr<KnownOfTask> Make(const mjModel& model, const v1::TaskDefinition& definition,
                                          const StateJoints& joints, bool first_order);

  std::vector<v1::KnownRow> rows;     // all, in the order of the file
  std::vector<GeometryRow> geometry;  // of the evaluated ones, in the same order
};

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MUJOCO_KNOWN_H_
// SPDX-License-Identifier: Apache-2.0
