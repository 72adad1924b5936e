// Sizes of a replay's files: the replay reserves them, and `train` checks that the disk has room. A value type; pure
// functions. Part of the files' layout: a change needs a new layout version of the ring.
#ifndef DATACOM_COMMON_TRANSITIONS_REPLAY_LAYOUT_H_
#define DATACOM_COMMON_TRANSITIONS_REPLAY_LAYOUT_H_

#include <algorithm>
#include <cstdint>

namespace datacom {

inline constexpr uint64_t kRingHeaderBytes = 4096;  // one page
inline constexpr uint64_t kRingGuardRows = 1024;    // most rows between two commits, in addition to the kept rows
inline constexpr uint64_t kFailureHeaderBytes = 8;  // the row's number, before its copy
inline constexpr uint64_t kCreditEntryBytes = 16;   // per session and member

constexpr uint64_t RingBytes(uint64_t kept, uint64_t guard, uint64_t record_bytes) {
  return kRingHeaderBytes + (kept + guard) * record_bytes;
}

// Sessions that may be live at once; fewer with very many members.
constexpr uint64_t SessionSlots(uint64_t members) {
  constexpr uint64_t kMaxSessions = 1024, kMinSessions = 16, kMaxBytes = 16 << 20;
  return std::clamp(kMaxBytes / (members * kCreditEntryBytes), kMinSessions, kMaxSessions);
}

struct ReplayLayout {
  uint64_t capacity = 0, failure_capacity = 0;
  uint64_t slack = 0;      // older rows kept for learners that resume
  uint64_t env_steps = 0;  // rows of a member in the whole run
  uint64_t row_bytes = 0;
  uint64_t guard = kRingGuardRows;

  uint64_t kept_rows() const { return std::min(env_steps, capacity + slack); }
  uint64_t kept_failures() const { return std::min(env_steps, failure_capacity + slack); }
  uint64_t failure_bytes() const { return row_bytes + kFailureHeaderBytes; }
  // All files of a run with `members` members.
  uint64_t Bytes(uint64_t members) const {
    return members * (RingBytes(kept_rows(), guard, row_bytes) + RingBytes(kept_failures(), guard, failure_bytes()) +
                      SessionSlots(members) * kCreditEntryBytes);
  }
};

}  // namespace datacom

#endif  // DATACOM_COMMON_TRANSITIONS_REPLAY_LAYOUT_H_
