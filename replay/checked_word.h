// A number below 2^48 with a check, in one 64-bit word of a mapped file: a store changes number and check together. The
// word 0 is no valid word, so that erased pages are noticed. Pure functions; thread-safe.
#ifndef DATACOM_REPLAY_CHECKED_WORD_H_
#define DATACOM_REPLAY_CHECKED_WORD_H_

#include <cstdint>
#include <optional>

#include "common/base/bytes.h"
#include "common/base/checksum.h"

namespace datacom::replay {

inline constexpr uint64_t kLargestCheckedNumber = (uint64_t{1} << 48) - 1;

// `place`: where the word belongs, for example its index in the file; a word copied to another place is invalid.
inline uint64_t CheckedWord(uint64_t number, uint64_t place) {
  const uint64_t words[] = {number, place};
  const uint64_t check = Crc32c(RawBytes(words)) | 0x8000;
  return number | (check << 48);
}

inline std::optional<uint64_t> NumberOf(uint64_t word, uint64_t place) {
  const uint64_t number = word & kLargestCheckedNumber;
  return CheckedWord(number, place) == word ? std::optional(number) : std::nullopt;
}

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_CHECKED_WORD_H_
// SPDX-License-Identifier: Apache-2.0
