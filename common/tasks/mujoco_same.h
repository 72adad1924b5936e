// Whether two compiled models are the same. A pure function; thread-safe.
#ifndef DATACOM_COMMON_TASKS_MUJOCO_SAME_H_
#define DATACOM_COMMON_TASKS_MUJOCO_SAME_H_

#include "absl/status/status.h"
#include "mujoco/mujoco.h"

namespace datacom {

enum class Names { kSame, kAny };

// Compares all numbers of two models, bit by bit, and the names of their elements unless these may be any. Paths of
// files may differ. FAILED_PRECONDITION names the first field that differs, the element that it belongs to, and both
// values.
absl::Status CheckSameModel(const mjModel& original, const mjModel& copy, Names names = Names::kSame);

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_MUJOCO_SAME_H_
// SPDX-License-Identifier: Apache-2.0
