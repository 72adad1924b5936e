// Numbers of the starts of a replay, and which parts of a run folder belong together.
//
// Every start of a replay draws a number. The file of sessions lists the numbers of all starts; rings, credit and the
// learner's checkpoints name the newest one that they have seen. When a folder is copied and both copies go on, each
// gets numbers that the other does not know, so a part of one is refused in the other. Pure functions; thread-safe.
#ifndef DATACOM_REPLAY_STARTS_H_
#define DATACOM_REPLAY_STARTS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "replay/checked_word.h"

namespace datacom::replay {

// At least so many numbers are kept, the newest ones. Checkpoints and files name one of the last few.
inline constexpr size_t kKeptStarts = 256;

// A random number from 1 to 2^48 - 1.
inline uint64_t DrawStart() {
  uint64_t number = 0;
  while (number == 0) number = SystemRandomNumber() & kLargestCheckedNumber;
  return number;
}

// FAILED_PRECONDITION unless `start` is 0 (none yet) or one of `known`. `part` is what names it.
inline absl::Status CheckStart(const std::string& part, uint64_t start, const std::vector<uint64_t>& known) {
  if (start == 0 || std::find(known.begin(), known.end(), start) != known.end()) return absl::OkStatus();
  const auto name = [](uint64_t number) { return absl::StrCat(absl::Hex(number, absl::kZeroPad12)); };
  return absl::FailedPreconditionError(absl::StrCat(
      part, " was last used by start ", name(start), " of the replay; the file of sessions knows ",
      known.empty() ? "no start" : absl::StrCat(known.size(), " starts, the newest is ", name(known.back())),
      ": the two are not from the same copy of the run, or one is older; restore the run folder from one copy, or "
      "start a new one"));
}

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_STARTS_H_
// SPDX-License-Identifier: Apache-2.0
