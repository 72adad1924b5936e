#include "replay/validate_chunk.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/transitions/check_columns.h"

namespace datacom::replay {
namespace {

uint32_t Largest(const char* data, size_t count) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, At<uint32_t>(data, 4 * i));
  return largest;
}

absl::Status CheckEnvironments(const Column& column, const char* data, size_t count, uint32_t environments) {
  if (Largest(data, count) < environments) return absl::OkStatus();
  for (size_t i = 0; i < count; ++i) {
    const uint32_t value = At<uint32_t>(data, 4 * i);
    if (value >= environments)
      return WrongValue(column, i, absl::StrCat(value, " is not below the session's ", environments, " environments"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateChunk(const RowSchema& schema, const v1::Chunk& chunk, uint32_t environments) {
  const uint64_t rows = chunk.row_count();
  const uint64_t wanted = rows * schema.wire_row_bytes();
  if (rows == 0) return absl::InvalidArgumentError("chunk without rows");
  if (chunk.columns().size() > kMaxChunkBytes || wanted > kMaxChunkBytes) {
    return absl::InvalidArgumentError(absl::StrCat("chunk of ", std::max<uint64_t>(wanted, chunk.columns().size()),
                                                   " bytes; at most ", kMaxChunkBytes, " are allowed"));
  }
  if (chunk.columns().size() != wanted) {
    return absl::InvalidArgumentError(absl::StrCat("chunk of ", rows, " rows has ", chunk.columns().size(),
                                                   " bytes of columns instead of ", wanted, " (",
                                                   schema.wire_row_bytes(), " per row)"));
  }
  if (chunk.first_sequence() > UINT64_MAX / 2)
    return absl::InvalidArgumentError(absl::StrCat("first_sequence ", chunk.first_sequence(), " is too large"));
  const char* data = chunk.columns().data();
  for (const Column& column : schema.wire()) {
    RETURN_IF_ERROR(CheckColumn(column, data, rows));
    if (column.name == "environment") RETURN_IF_ERROR(CheckEnvironments(column, data, rows, environments));
    data += rows * column.bytes();
  }
  return absl::OkStatus();
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
