// Rows as an actor sends them, each an episode of its own, so that a replay accepts them in this order.
#ifndef DATACOM_TESTS_TESTING_WIRE_ROWS_H_
#define DATACOM_TESTS_TESTING_WIRE_ROWS_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "common/transitions/row_schema.h"

namespace datacom::testing {

// Gives rows [first, first + count) of a session the numbers of their episodes.
inline void NumberEpisodes(const RowSchema& schema, uint64_t first, uint32_t count, std::string* columns) {
  size_t before = 0;
  for (const Column& column : schema.wire()) {
    if (absl::string_view(column.name) == "episode") break;
    before += count * column.bytes();
  }
  for (uint32_t i = 0; i < count; ++i) {
    const auto episode = static_cast<uint32_t>(first + i);
    std::memcpy(&(*columns)[before + i * sizeof episode], &episode, sizeof episode);
  }
}

// The columns of these rows: zeros, but for the numbers of the episodes.
inline std::string WireRows(const RowSchema& schema, uint64_t first, uint32_t count) {
  std::string columns(count * schema.wire_row_bytes(), '\0');
  NumberEpisodes(schema, first, count, &columns);
  return columns;
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_WIRE_ROWS_H_
// SPDX-License-Identifier: Apache-2.0
