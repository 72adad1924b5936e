// The rows that a batch draws (docs/algorithms.md 1.2): uniform with replacement, a pure function of a
// stream's key. Stateless; thread-safe.
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

// Failure rows are used only if the table holds more of them than one batch (docs/algorithms.md 1.2).
inline bool UseFailures(uint64_t available, uint64_t capacity, uint32_t batch) {
  return batch > 0 && std::min(available, capacity) > batch;
}

}  // namespace datacom

#endif  // DATACOM_COMMON_TRANSITIONS_DRAW_ROWS_H_
// SPDX-License-Identifier: Apache-2.0
