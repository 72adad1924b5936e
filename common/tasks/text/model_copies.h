// The parts that MuJoCo makes of elements with a count: replicate, composite, flexcomp. MuJoCo makes them before it can
// be stopped, and a count of 1e8 takes all memory. A pure function; thread-safe.
#ifndef DATACOM_COMMON_TASKS_TEXT_MODEL_COPIES_H_
#define DATACOM_COMMON_TASKS_TEXT_MODEL_COPIES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace datacom::text {

inline constexpr double kMostCopies = 10000;

// INVALID_ARGUMENT, naming the element and the number, when an element of this XML with a count, together with the
// replicates around it, makes more than kMostCopies parts. Reads nothing that is included.
absl::Status CheckCopies(absl::string_view xml);

}  // namespace datacom::text

#endif  // DATACOM_COMMON_TASKS_TEXT_MODEL_COPIES_H_
// SPDX-License-Identifier: Apache-2.0
