// Numbers that acting rules read from a snapshot. Pure functions; thread-safe. INVALID_ARGUMENT naming the scalar that
// is missing or has a value no rule can act with.
#ifndef DATACOM_COMMON_ACTING_SCALARS_H_
#define DATACOM_COMMON_ACTING_SCALARS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/nn/snapshot.h"
#include "common/safety/safe_map.h"

namespace datacom {

absl::StatusOr<double> FiniteScalar(const Snapshot& snapshot, absl::string_view name);
// atacom_gain and slack_beta > 0.
absl::StatusOr<SafeMapGains> ReadSafeMapGains(const Snapshot& snapshot);

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_SCALARS_H_
