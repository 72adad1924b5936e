#include "replay/validate_chunk.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "replay/row_view.h"

namespace datacom {
namespace {

// True when any of `count` float32 is infinite or NaN: then its bits without the sign are at or above infinity's. One
// pass without branches, which the compiler turns into vector instructions.
bool AnyNonFinite(const char* data, size_t count) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, At<uint32_t>(data, 4 * i) & 0x7fffffffu);
  return largest >= 0x7f800000u;
}

template <typename T>
T Largest(const char* data, size_t count) {
  T largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, At<T>(data, sizeof(T) * i));
  return largest;
}

absl::Status Wrong(const Column& column, size_t value_index, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("column ", column.name, ", row ", value_index / column.width, ": ", what));
}

absl::Status CheckFloats(const Column& column, const char* data, size_t count) {
  if (!AnyNonFinite(data, count)) return absl::OkStatus();
  size_t i = 0;
  while (std::isfinite(At<float>(data, 4 * i))) ++i;
  return Wrong(column, i, absl::StrCat(At<float>(data, 4 * i), " is not finite"));
}

absl::Status CheckFlags(const Column& column, const char* data, size_t count) {
  if (Largest<uint8_t>(data, count) <= 1) return absl::OkStatus();
  for (size_t i = 0; i < count; ++i) {
    const auto value = static_cast<unsigned char>(data[i]);
    if (value > 1) return Wrong(column, i, absl::StrCat(static_cast<int>(value), " is neither 0 nor 1"));
  }
  return absl::OkStatus();
}

absl::Status CheckEnvironments(const Column& column, const char* data, size_t count, uint32_t environments) {
  if (Largest<uint32_t>(data, count) < environments) return absl::OkStatus();
  for (size_t i = 0; i < count; ++i) {
    const uint32_t value = At<uint32_t>(data, 4 * i);
    if (value >= environments)
      return Wrong(column, i, absl::StrCat(value, " is not below the session's ", environments, " environments"));
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
                                                   " bytes; at most ", kMaxChunkBytes, " are taken at once"));
  }
  if (chunk.columns().size() != wanted) {
    return absl::InvalidArgumentError(absl::StrCat("chunk of ", rows, " rows has ", chunk.columns().size(),
                                                   " bytes of columns, the row schema makes it ", wanted, " (",
                                                   schema.wire_row_bytes(), " a row)"));
  }
  if (chunk.first_sequence() > UINT64_MAX / 2)
    return absl::InvalidArgumentError(absl::StrCat("first_sequence ", chunk.first_sequence()));
  const char* data = chunk.columns().data();
  for (const Column& column : schema.wire()) {
    const size_t values = rows * column.width;
    absl::Status status;
    if (column.type == ColumnType::kFloat32) status = CheckFloats(column, data, values);
    if (column.type == ColumnType::kUint8) status = CheckFlags(column, data, values);
    if (column.name == "environment") status = CheckEnvironments(column, data, values, environments);
    if (!status.ok()) return status;
    data += rows * column.bytes();
  }
  return absl::OkStatus();
}

}  // namespace datacom
