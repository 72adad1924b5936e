// The names of actors and evaluators. A pure function; thread-safe.
#ifndef DATACOM_COMMON_BASE_NAME_H_
#define DATACOM_COMMON_BASE_NAME_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace datacom {

inline constexpr size_t kMaxNameLength = 255;

// INVALID_ARGUMENT unless the name has 1 to kMaxNameLength printable ASCII characters without spaces: names appear in
// logs, metrics and messages for people.
absl::Status CheckName(absl::string_view name);

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_NAME_H_
// SPDX-License-Identifier: Apache-2.0
