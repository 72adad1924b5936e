// What values the columns of rows may have. Pure functions; thread-safe.
#ifndef DATACOM_COMMON_TRANSITIONS_CHECK_COLUMNS_H_
#define DATACOM_COMMON_TRANSITIONS_CHECK_COLUMNS_H_

#include <string>

#include "absl/status/status.h"
#include "common/transitions/row_schema.h"

namespace datacom {

// The largest size of a float in a row: its square is still finite in float32. Actors end an episode in which a reward,
// a cost or an observation is larger.
inline constexpr float kLargestValue = 1e18f;

// `data` holds `rows` values of the column. INVALID_ARGUMENT, naming column, row and value, for a float that is not
// finite or larger than kLargestValue, or absorbing or last other than 0 and 1.
absl::Status CheckColumn(const Column& column, const char* data, size_t rows);
// "column reward, row 3: <what>"; value_index counts the column's values.
absl::Status WrongValue(const Column& column, size_t value_index, const std::string& what);

}  // namespace datacom

#endif  // DATACOM_COMMON_TRANSITIONS_CHECK_COLUMNS_H_
// SPDX-License-Identifier: Apache-2.0
