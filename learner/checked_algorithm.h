// Turns the exceptions of a call of an algorithm into a Status. The learner must wrap every such call.
//
// INVALID_ARGUMENT for std::invalid_argument (a wrong configuration or state), INTERNAL for anything else that is
// thrown; the message begins with `what`, the call that failed. After an error other than Load's the algorithm's state
// is undefined. Thread-safety and blocking are the algorithm's (learner/algorithms/algorithm.h).
#ifndef DATACOM_LEARNER_CHECKED_ALGORITHM_H_
#define DATACOM_LEARNER_CHECKED_ALGORITHM_H_

#include <exception>
#include <stdexcept>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

// What `call` returns, or OK if it returns nothing.
template <typename Call, typename Result = std::invoke_result_t<Call>>
std::conditional_t<std::is_void_v<Result>, absl::Status, absl::StatusOr<Result>> Checked(const char* what, Call call) {
  try {
    if constexpr (std::is_void_v<Result>) {
      call();
      return absl::OkStatus();
    } else {
      return call();
    }
  } catch (const std::invalid_argument& error) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", error.what()));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(what, ": ", error.what()));
  } catch (...) {
    return absl::InternalError(absl::StrCat(what, ": an exception that is not a std::exception"));
  }
}

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_CHECKED_ALGORITHM_H_
// SPDX-License-Identifier: Apache-2.0
