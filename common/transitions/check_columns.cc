#include "common/transitions/check_columns.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace datacom {
namespace {

// True when any of `count` float32 is too large, infinite or NaN: its bits without the sign are then above the limit's.
// One pass without branches, which the compiler vectorizes.
bool AnyTooLarge(const char* data, size_t count) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, At<uint32_t>(data, 4 * i) & 0x7fffffffu);
  return largest > std::bit_cast<uint32_t>(kLargestValue);
}

absl::Status CheckFloats(const Column& column, const char* data, size_t count) {
  if (!AnyTooLarge(data, count)) return absl::OkStatus();
  size_t i = 0;
  while (std::abs(At<float>(data, 4 * i)) <= kLargestValue) ++i;
  const auto value = At<float>(data, 4 * i);
  return WrongValue(column, i,
                    std::isfinite(value) ? absl::StrCat(value, " is larger than ", kLargestValue)
                                         : absl::StrCat(value, " is not finite"));
}

absl::Status CheckFlags(const Column& column, const char* data, size_t count) {
  unsigned char bits = 0;
  for (size_t i = 0; i < count; ++i) bits |= static_cast<unsigned char>(data[i]);
  if (bits <= 1) return absl::OkStatus();
  for (size_t i = 0; i < count; ++i) {
    const auto value = static_cast<unsigned char>(data[i]);
    if (value > 1) return WrongValue(column, i, absl::StrCat(static_cast<int>(value), " is neither 0 nor 1"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WrongValue(const Column& column, size_t value_index, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("column ", column.name, ", row ", value_index / column.width, ": ", what));
}

absl::Status CheckColumn(const Column& column, const char* data, size_t rows) {
  const size_t values = rows * column.width;
  if (column.type == ColumnType::kFloat32) return CheckFloats(column, data, values);
  if (column.type == ColumnType::kUint8) return CheckFlags(column, data, values);
  return absl::OkStatus();
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
