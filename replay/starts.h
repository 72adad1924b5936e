// Numbers of the starts of a replay, and which parts of a run folder belong together.
//
// Every start of a replay draws a number. The file of sessions lists the numbers of all starts; rings, credit and the
// learner's checkpoints name the newest one that they have seen. When a folder is copied and both copies go on, each
// gets numbers that the other does not know, so a part of one is refused in the other. Pure functions; thread-safe.
#ifndef DATACOM_REPLAY_STARTS_H_
#define DATACOM_REPLAY_STARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace datacom::replay {

// At least so many numbers are kept, the newest ones. Checkpoints and files name one of the last few.
inline constexpr size_t kKeptStarts = 256;

uint64_t DrawStart();                   // a random number from 1 to 2^48 - 1
std::string StartName(uint64_t start);  // 12 hexadecimal digits
// FAILED_PRECONDITION unless `start` is 0 (none yet) or one of `known`. `part` is what names it.
absl::Status CheckStart(const std::string& part, uint64_t start, const std::vector<uint64_t>& known);

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_STARTS_H_
// SPDX-License-Identifier: Apache-2.0
