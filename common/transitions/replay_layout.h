// Sizes of a replay's files: the replay reserves them, and `train` checks that the disk has room. A value type; pure
// functions. Part of the files' layout: a change needs a new layout version of the ring.
#ifndef DATACOM_COMMON_TRANSITIONS_REPLAY_LAYOUT_H_
#define DATACOM_COMMON_TRANSITIONS_REPLAY_LAYOUT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace datacom {

inline constexpr uint64_t kRingHeaderBytes = 4096;  // one page
inline constexpr uint64_t kRingGuardRows = 1024;    // most rows between two commits, in addition to the kept rows
inline constexpr uint64_t kFailureHeaderBytes = 8;  // the row's number, before its copy
inline constexpr uint64_t kRingBlockRecords = 64;   // records that share a checksum
inline constexpr uint64_t kRingBlockHeaderBytes = 16;
inline constexpr uint64_t kCreditHeaderBytes = 4096;
inline constexpr uint64_t kCreditEntryBytes = 16;  // per session and member

// One block more than the records fill: a block that is being overwritten holds no readable record.
constexpr uint64_t RingBlocks(uint64_t kept, uint64_t guard) {
  return (kept + guard + kRingBlockRecords - 1) / kRingBlockRecords + 1;
}

constexpr uint64_t RingBlockBytes(uint64_t record_bytes) {
  return kRingBlockHeaderBytes + kRingBlockRecords * record_bytes;
}

constexpr uint64_t RingBytes(uint64_t kept, uint64_t guard, uint64_t record_bytes) {
  return kRingHeaderBytes + RingBlocks(kept, guard) * RingBlockBytes(record_bytes);
}

// Sessions that may be live at once; fewer with very many members.
constexpr uint64_t SessionSlots(uint64_t members) {
  constexpr uint64_t kMaxSessions = 1024, kMinSessions = 16, kMaxBytes = 16 << 20;
  return std::clamp(kMaxBytes / (members * kCreditEntryBytes), kMinSessions, kMaxSessions);
}

struct ReplayLayout {
  uint64_t capacity = 0, failure_capacity = 0;  // rows of a member that draws use
  uint64_t slack = 0;                           // older rows kept for learners that resume
  uint64_t env_steps = 0;                       // rows of a member in the whole run
  uint64_t row_bytes = 0;
  double newest_share = 1;          // of all rows of a member so far, in (0, 1]: draws use no more
  uint64_t guard = kRingGuardRows;  // smaller in tests

  // How many of the newest rows a draw uses when the member has `seen` rows; at least 1.
  uint64_t Window(uint64_t seen) const {
    const auto share = static_cast<uint64_t>(std::ceil(newest_share * static_cast<double>(seen)));
    return std::max<uint64_t>(1, std::min(capacity, share));
  }
  uint64_t kept_rows() const { return std::min(env_steps, capacity + slack); }
  uint64_t kept_failures() const { return std::min(env_steps, failure_capacity + slack); }
  uint64_t failure_bytes() const { return row_bytes + kFailureHeaderBytes; }
  // All files of a run with `members` members.
  uint64_t Bytes(uint64_t members) const {
    return members * (RingBytes(kept_rows(), guard, row_bytes) + RingBytes(kept_failures(), guard, failure_bytes()) +
                      SessionSlots(members) * kCreditEntryBytes) +
           kCreditHeaderBytes;
  }
};

}  // namespace datacom

#endif  // DATACOM_COMMON_TRANSITIONS_REPLAY_LAYOUT_H_
// SPDX-License-Identifier: Apache-2.0
