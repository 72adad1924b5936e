// Reads a snapshot's scalars, names encoded in them, and vectors, for acting rules. Pure functions; thread-safe.
// INVALID_ARGUMENT, naming the scalar or array, when it is missing or invalid.
#ifndef DATACOM_COMMON_ACTING_SCALARS_H_
#define DATACOM_COMMON_ACTING_SCALARS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/nn/snapshot.h"
#include "common/safety/safe_map.h"

namespace datacom {

absl::StatusOr<double> FiniteScalar(const Snapshot& snapshot, absl::string_view name);
// The array has shape [size] and finite numbers, which are above 0 if `positive`.
absl::Status CheckVector(const Snapshot& snapshot, absl::string_view name, int size, bool positive = false);
// atacom_gain and slack_beta > 0.
absl::StatusOr<SafeMapGains> ReadSafeMapGains(const Snapshot& snapshot);
// <row> of every scalar known_constraint.<row>, sorted: rows of the task's known constraints joined to the learned one.
std::vector<std::string> KnownConstraintNames(const Snapshot& snapshot);
// A run never changes these names: INVALID_ARGUMENT, naming both lists, when the snapshot's differ from `expected`.
// Allocates nothing when they are equal.
absl::Status CheckKnownConstraintNames(const Snapshot& snapshot, const std::vector<std::string>& expected);

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_SCALARS_H_
