// The rows that a batch draws (docs/algorithms.md 1.2): uniform with replacement, a pure function of a stream's key;
// for a draw of the replay, of (run seed, member seed, update, rows). Stateless; thread-safe.
#ifndef DATACOM_COMMON_TRANSITIONS_DRAW_ROWS_H_
#define DATACOM_COMMON_TRANSITIONS_DRAW_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "common/base/random.h"

namespace datacom {

// numbers[i], i < count: among the newest min(available, capacity) of rows [0, available). REQUIRES available > 0.
inline void DrawRows(uint64_t stream_key, uint64_t available, uint64_t capacity, uint32_t count, uint64_t* numbers) {
  RandomStream stream(stream_key);
  const uint64_t held = std::min(available, capacity);
  for (uint32_t i = 0; i < count; ++i) numbers[i] = available - held + stream.Below(held);
}

struct DrawKey {
  uint64_t run_seed = 0, member_seed = 0, update = 0;
};

// The same for the rows of a member, and for its failures, of which `available` are those that the update may use.
inline void DrawMain(const DrawKey& key, uint64_t available, uint64_t window, uint32_t count, uint64_t* numbers) {
  DrawRows(StreamKey("replay.draw.main", {key.run_seed, key.member_seed, key.update}), available, window, count,
           numbers);
}
inline void DrawFailures(const DrawKey& key, uint64_t available, uint64_t capacity, uint32_t count, uint64_t* numbers) {
  DrawRows(StreamKey("replay.draw.failure", {key.run_seed, key.member_seed, key.update}), available, capacity, count,
           numbers);
}

// Failure rows are used only if the table holds more of them than one batch (docs/algorithms.md 1.2).
inline bool UseFailures(uint64_t available, uint64_t capacity, uint32_t batch) {
  return batch > 0 && std::min(available, capacity) > batch;
}

}  // namespace datacom

#endif  // DATACOM_COMMON_TRANSITIONS_DRAW_ROWS_H_
// SPDX-License-Identifier: Apache-2.0
