// EXPECT_THAT(x, IsOk()) for an absl::Status or an absl::StatusOr; a failure prints the status.
#ifndef DATACOM_TESTS_TESTING_IS_OK_H_
#define DATACOM_TESTS_TESTING_IS_OK_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

namespace datacom::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << "with the status " << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_IS_OK_H_
// SPDX-License-Identifier: Apache-2.0
