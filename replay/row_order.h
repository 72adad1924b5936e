// Checks a chunk of rows: by itself, and that its rows can follow the rows that a member holds.
//
// In each environment of a session a row continues the episode of the row before it with the next step, or begins an
// episode with a larger number at step 0. No step reaches the task's horizon, nothing follows the last row of an
// episode, a row that is absorbing is its episode's last, and no policy is newer than the run's last update. The actors
// do this by themselves; the check keeps a peer that does not from spoiling a run. Not thread-safe; allocates for
// environments that it sees for the first time.
#ifndef DATACOM_REPLAY_ROW_ORDER_H_
#define DATACOM_REPLAY_ROW_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/replay.pb.h"
#include "replay/episodes.h"

namespace datacom::replay {

inline constexpr size_t kMaxChunkBytes = 1 << 20;
inline constexpr size_t kMaxFaultBytes = 1000;

// INVALID_ARGUMENT for: no rows, wrong size, more than kMaxChunkBytes or kMaxFaultBytes; and, naming column, row and
// value: a float that is not finite, absorbing or last other than 0 and 1, an environment at or above `environments`.
absl::Status ValidateChunk(const RowSchema& schema, const v1::Chunk& chunk, uint32_t environments);

// The update of the policy that made the last row of a chunk with at least one row, which is valid for ValidateChunk.
uint64_t LastPolicyUpdate(const RowSchema& schema, const std::string& columns, uint32_t count);

class RowOrder {
 public:
  struct Limits {
    uint64_t last_update = 0;  // of the run
    uint32_t horizon = 0;      // steps of an episode; 0: not known
  };
  RowOrder(const RowSchema& schema, const Limits& limits);

  // Rows [from, count) of `columns` (proto Chunk), which are valid for ValidateChunk. INVALID_ARGUMENT naming column,
  // row and value.
  absl::Status Check(const EpisodeTracker& held, uint32_t session, const std::string& columns, uint32_t count,
                     uint32_t from);

 private:
  struct Place {
    uint64_t call = 0;  // Check in which `row` was set
    NewestRow row;
  };

  // The part that needs no other row.
  absl::Status CheckRow(const std::string& columns, uint32_t count, uint32_t row) const;

  const Limits limits_;
  size_t environment_ = 0, episode_ = 0, step_ = 0, absorbing_ = 0, last_ = 0,
         policy_update_ = 0;   // bytes of a row before
  std::vector<Place> places_;  // by environment
  uint64_t calls_ = 0;
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_ROW_ORDER_H_
// SPDX-License-Identifier: Apache-2.0
