// Checks the values of a block of columns. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_TRANSITIONS_CHECK_COLUMNS_H_
#define DATACOM_COMMON_TRANSITIONS_CHECK_COLUMNS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/transitions/row_schema.h"

namespace datacom {

// `data` holds `rows` values of the column. INVALID_ARGUMENT, naming column, row and value, for a float that is not
// finite, or absorbing or last other than 0 and 1.
absl::Status CheckColumn(const Column& column, const char* data, size_t rows);
// "column reward, row 3: <what>"; value_index counts the column's values.
absl::Status WrongValue(const Column& column, size_t value_index, const std::string& what);

}  // namespace datacom

#endif  // DATACOM_COMMON_TRANSITIONS_CHECK_COLUMNS_H_
// SPDX-License-Identifier: Apache-2.0
