// Status macros, Status from errno, and exit codes.
// Thread-safe; never blocks.
#ifndef DATACOM_COMMON_BASE_STATUS_H_
#define DATACOM_COMMON_BASE_STATUS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace datacom {

// "open /x/y: No space left on device" with the code that errno means (ENOENT NotFound, ENOSPC ResourceExhausted, ...).
absl::Status ErrnoStatus(int error, const std::string& what);

// Same code, message prefixed: "ring /a/b: checksum ...".
absl::Status Annotate(const absl::Status& status, const std::string& prefix);
template <class Value>
absl::StatusOr<Value> Annotate(absl::StatusOr<Value> value, const std::string& prefix) {
  if (!value.ok()) return Annotate(value.status(), prefix);
  return value;
}

// Whether a file may be sound although reading it failed: this user may not, or memory or descriptors are too few.
bool CannotBeReadForNow(const absl::Status& status);

// Exit codes of every binary.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;         // wrong usage or configuration: never retried
inline constexpr int kExitInterrupted = 75;  // stopped in good order: start again to resume
// kExitUsage for InvalidArgument and for errors that no retry can resolve (FailedPrecondition: another run, build or
// layout; DataLoss; Unauthenticated and PermissionDenied: another run's token), kExitInterrupted for Cancelled, kExitOk
// for OK, else kExitFailure.
int ExitCode(const absl::Status& status);

}  // namespace datacom

#define DATACOM_CONCAT_INNER_(a, b) a##b
#define DATACOM_CONCAT_(a, b) DATACOM_CONCAT_INNER_(a, b)

#define RETURN_IF_ERROR(expr)                          \
  do {                                                 \
    absl::Status datacom_status_ = (expr);             \
    if (!datacom_status_.ok()) return datacom_status_; \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_IMPL_(DATACOM_CONCAT_(datacom_statusor_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                           \
  if (!tmp.ok()) return tmp.status();          \
  lhs = std::move(tmp).value()

#endif  // DATACOM_COMMON_BASE_STATUS_H_
// SPDX-License-Identifier: Apache-2.0
