// Which rows an update draws (docs/algorithms.md 1.2): a pure function of (run seed, member seed, update,
// rows). Stateless; thread-safe.
#ifndef DATACOM_REPLAY_SAMPLER_H_
#define DATACOM_REPLAY_SAMPLER_H_

#include <cstdint>

#include "common/transitions/draw_rows.h"

namespace datacom::replay {

struct DrawKey {
  uint64_t run_seed = 0;
  uint64_t member_seed = 0;
  uint64_t update = 0;
};

// numbers[i], i < count: uniform with replacement among the newest min(available, window) of rows [0, available).
// REQUIRES available > 0.
inline void DrawMain(const DrawKey& key, uint64_t available, uint64_t window, uint32_t count, uint64_t* numbers) {
  DrawRows(StreamKey("replay.draw.main", {key.run_seed, key.member_seed, key.update}), available, window, count,
           numbers);
}

// The same for the failure table, with its own random stream; `available` = failures among the rows that the update may
// use.
inline void DrawFailures(const DrawKey& key, uint64_t available, uint64_t capacity, uint32_t count, uint64_t* numbers) {
  DrawRows(StreamKey("replay.draw.failure", {key.run_seed, key.member_seed, key.update}), available, capacity, count,
           numbers);
}

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_SAMPLER_H_
// SPDX-License-Identifier: Apache-2.0
