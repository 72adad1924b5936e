// The bytes of a ring's file, as replay/ring.h describes them; written a second time for the fuzz targets, so that they
// check the layout. Pure functions.
#ifndef DATACOM_TESTS_FUZZ_RING_BYTES_H_
#define DATACOM_TESTS_FUZZ_RING_BYTES_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/checksum.h"
#include "common/transitions/replay_layout.h"
#include "replay/checked_word.h"
#include "tests/fuzz/fuzz_target.h"

namespace datacom::fuzz {

// Places in the header.
inline constexpr size_t kRingIdentity = 24, kRingIdentityBytes = 288, kRingKept = kRingIdentity + 16, kRingWords = 320,
                        kRingWordCount = 4, kRingHeaderUsed = kRingWords + 8 * kRingWordCount;

inline uint64_t WordAt(const std::string& file, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

inline void PutWord(uint64_t value, size_t at, std::string* file) { std::memcpy(&(*file)[at], &value, sizeof value); }

inline uint64_t RingKept(const std::string& file) { return WordAt(file, kRingKept); }
inline uint64_t RingGuard(const std::string& file) { return WordAt(file, kRingIdentity + 24); }
inline uint64_t RingCursor(const std::string& file) { return WordAt(file, kRingWords) & replay::kLargestCheckedNumber; }

// The place of record `number` in a file whose ring keeps `kept` records.
inline size_t RingPlace(uint64_t number, uint64_t kept, uint64_t guard, uint64_t record_bytes) {
  const uint64_t blocks = (kept + guard + 63) / 64 + 1;
  return 4096 + number / 64 % blocks * (16 + 64 * record_bytes) + 16 + number % 64 * record_bytes;
}

// Recomputes the checksum of the header. `sample` begins with the frame of a sound ring.
inline void SealRingHeader(absl::string_view sample, std::string* file) {
  const std::string frame = FrameLike(sample, file->substr(kRingIdentity, kRingIdentityBytes));
  file->replace(0, kRingIdentity, frame.substr(0, kRingIdentity));
}

// Recomputes the checks of the cursor and the counters.
inline void SealRingWords(std::string* file) {
  for (uint64_t place = 0; place < kRingWordCount; ++place) {
    const size_t at = kRingWords + 8 * place;
    PutWord(replay::CheckedWord(WordAt(*file, at) & replay::kLargestCheckedNumber, place), at, file);
  }
}

// Recomputes the first sum of every block in use.
inline void SealRingBlocks(uint64_t record_bytes, std::string* file) {
  const uint64_t kept = RingKept(*file), guard = RingGuard(*file), cursor = RingCursor(*file);
  if (kept > 4096 || guard > 4096) return;
  for (uint64_t block = (cursor - std::min(cursor, kept)) / 64; block * 64 < cursor; ++block) {
    const size_t begin = RingPlace(block * 64, kept, guard, record_bytes);
    const uint64_t records = std::min<uint64_t>(64, cursor - block * 64);
    if (begin + records * record_bytes > file->size()) return;
    const uint32_t start = Crc32c(absl::string_view(reinterpret_cast<const char*>(&block), sizeof block));
    const uint32_t crc = Crc32c(absl::string_view(*file).substr(begin, records * record_bytes), start);
    PutWord(records | uint64_t{crc} << 32, begin - 16, file);
  }
}

}  // namespace datacom::fuzz

#endif  // DATACOM_TESTS_FUZZ_RING_BYTES_H_
// SPDX-License-Identifier: Apache-2.0
