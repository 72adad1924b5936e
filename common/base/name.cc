#include "common/base/name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace datacom {

absl::Status CheckName(absl::string_view name) {
  if (!name.empty() && name.size() <= kMaxNameLength && std::all_of(name.begin(), name.end(), absl::ascii_isgraph))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("name \"", absl::CHexEscape(name.substr(0, 32)), "\" of ", name.size(),
                                                 " bytes: a name has 1 to ", kMaxNameLength,
                                                 " printable ASCII characters without spaces"));
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
