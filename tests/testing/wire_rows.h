// Rows as an actor sends them, each an episode of its own, so that a replay accepts them in this order.
#ifndef DATACOM_TESTS_TESTING_WIRE_ROWS_H_
#define DATACOM_TESTS_TESTING_WIRE_ROWS_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "common/transitions/row_schema.h"

namespace datacom::testing {

// Gives rows [first, first + count) of a session their numbers in a column: "episode" for episodes of one step, "step"
// for an episode without an end.
inline void NumberRows(const RowSchema& schema, absl::string_view numbered, uint64_t first, uint32_t count,
                       std::string* columns) {
  size_t before = 0;
  for (const Column& column : schema.wire()) {
    if (numbered == column.name) break;
    before += count * column.bytes();
  }
  for (uint32_t i = 0; i < count; ++i) {
    const auto number = static_cast<uint32_t>(first + i);
    std::memcpy(&(*columns)[before + i * sizeof number], &number, sizeof number);
  }
}

// The columns of these rows: zeros, but for the numbers of the episodes.
inline std::string WireRows(const RowSchema& schema, uint64_t first, uint32_t count) {
  std::string columns(count * schema.wire_row_bytes(), '\0');
  NumberRows(schema, "episode", first, count, &columns);
  return columns;
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_WIRE_ROWS_H_
// SPDX-License-Identifier: Apache-2.0
