// Rules for names. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_BASE_NAME_H_
#define DATACOM_COMMON_BASE_NAME_H_

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace datacom {

inline constexpr size_t kMaxNameLength = 255;

// Of actors and evaluators: INVALID_ARGUMENT unless the name has 1 to kMaxNameLength printable ASCII characters without
// spaces: names appear in logs, metrics and messages for people.
inline absl::Status CheckName(absl::string_view name) {
  if (!name.empty() && name.size() <= kMaxNameLength && std::all_of(name.begin(), name.end(), absl::ascii_isgraph))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("name \"", absl::CHexEscape(name.substr(0, 32)), "\" of ", name.size(),
                                                 " bytes: a name has 1 to ", kMaxNameLength,
                                                 " printable ASCII characters without spaces"));
}

// Whether a name can be part of a column, a metric and a variable of an expression: letters, digits and "_", not first
// a digit.
inline bool IsIdentifier(absl::string_view name) {
  const auto valid = [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; };
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), valid);
}

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_NAME_H_
// SPDX-License-Identifier: Apache-2.0
