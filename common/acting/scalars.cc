#include "common/acting/scalars.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"

namespace datacom {
namespace {

constexpr absl::string_view kKnownPrefix = "known_constraint.";

}  // namespace

absl::StatusOr<double> FiniteScalar(const Snapshot& snapshot, absl::string_view name) {
  const absl::StatusOr<double> found = snapshot.Scalar(name);
  if (!found.ok()) return absl::InvalidArgumentError(found.status().message());
  if (!std::isfinite(*found)) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot scalar ", name, " = ", *found, ", must be finite"));
  }
  return *found;
}

absl::Status CheckVector(const Snapshot& snapshot, absl::string_view name, int size, bool positive) {
  const NamedArray* const array = snapshot.Find(name);
  if (array == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot for acting rule \"", snapshot.acting_rule, "\" has no array ", name));
  }
  const auto count = static_cast<size_t>(size);
  if (array->shape.size() != 1 || array->shape[0] != count || array->values.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("array ", name, " has shape [", absl::StrJoin(array->shape, ", "),
                                                   "] and ", array->values.size(), " values, expected [", size, "]"));
  }
  for (const float value : array->values) {
    if (std::isfinite(value) && (value > 0 || !positive)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("array ", name, " holds ", value, ", must be finite", positive ? " and above 0" : ""));
  }
  return absl::OkStatus();
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

std::vector<std::string> KnownConstraintNames(const Snapshot& snapshot) {
  std::vector<std::string> names;
  for (const auto& [name, value] : snapshot.scalars) {
    if (absl::StartsWith(name, kKnownPrefix)) names.push_back(name.substr(kKnownPrefix.size()));
  }
  return names;
}

absl::Status CheckKnownConstraintNames(const Snapshot& snapshot, const std::vector<std::string>& expected) {
  size_t found = 0;
  bool same = true;
  for (const auto& [name, value] : snapshot.scalars) {
    if (!absl::StartsWith(name, kKnownPrefix)) continue;
    same = same && found < expected.size() && absl::string_view(name).substr(kKnownPrefix.size()) == expected[found];
    ++found;
  }
  if (same && found == expected.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("snapshot joins the known constraints [",
                                                 absl::StrJoin(KnownConstraintNames(snapshot), ", "), "], not [",
                                                 absl::StrJoin(expected, ", "), "]"));
}

}  // namespace datacom
