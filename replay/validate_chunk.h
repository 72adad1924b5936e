// Checks a chunk of rows. A pure function; thread-safe.
#ifndef DATACOM_REPLAY_VALIDATE_CHUNK_H_
#define DATACOM_REPLAY_VALIDATE_CHUNK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/transitions/row_schema.h"
#include "datacom/v1/replay.pb.h"

namespace datacom::replay {

inline constexpr size_t kMaxChunkBytes = 1 << 20;

// INVALID_ARGUMENT for: no rows, wrong size, more than kMaxChunkBytes; and, naming column, row and value: a float that
// is not finite, absorbing or last other than 0 and 1, an environment at or above `environments`.
absl::Status ValidateChunk(const RowSchema& schema, const v1::Chunk& chunk, uint32_t environments);

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_VALIDATE_CHUNK_H_
// SPDX-License-Identifier: Apache-2.0
