#include "common/acting/scalars.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace datacom {

absl::StatusOr<double> FiniteScalar(const Snapshot& snapshot, absl::string_view name) {
  const absl::StatusOr<double> found = snapshot.Scalar(name);
  if (!found.ok()) return absl::InvalidArgumentError(found.status().message());
  if (!std::isfinite(*found)) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot scalar ", name, " = ", *found, ", must be finite"));
  }
  return *found;
}

absl::StatusOr<SafeMapGains> ReadSafeMapGains(const Snapshot& snapshot) {
  SafeMapGains gains;
  ASSIGN_OR_RETURN(gains.lambda, FiniteScalar(snapshot, "atacom_gain"));
  ASSIGN_OR_RETURN(gains.beta, FiniteScalar(snapshot, "slack_beta"));
  if (!(gains.beta > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot scalar slack_beta = ", gains.beta, ", must be above 0"));
  }
  return gains;
}

}  // namespace datacom
