#include "replay/starts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/random.h"
#include "replay/checked_word.h"

namespace datacom::replay {

uint64_t DrawStart() {
  for (;;) {
    const uint64_t number = SystemRandomNumber() & kLargestCheckedNumber;
    if (number != 0) return number;
  }
}

std::string StartName(uint64_t start) { return absl::StrFormat("%012x", start); }

absl::Status CheckStart(const std::string& part, uint64_t start, const std::vector<uint64_t>& known) {
  if (start == 0 || std::find(known.begin(), known.end(), start) != known.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      part, " was last used by start ", StartName(start), " of the replay; the file of sessions knows ",
      known.empty() ? "no start" : absl::StrCat(known.size(), " starts, the newest is ", StartName(known.back())),
      ": the two are not from the same copy of the run, or one is older; restore the run folder from one copy, or "
      "start a new one"));
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
