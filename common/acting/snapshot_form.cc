#include "common/acting/snapshot_form.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"

namespace datacom {
namespace {

absl::Status CheckScalar(const SnapshotForm::Scalar& scalar, const Snapshot& snapshot) {
  const auto found = snapshot.scalars.find(scalar.name);
  if (found == snapshot.scalars.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot for acting rule \"", snapshot.acting_rule, "\" has no scalar \"", scalar.name, "\""));
  }
  const double value = found->second;
  const auto wrong = [&](const std::string& need) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot scalar ", scalar.name, " = ", value, ", must be ", need));
  };
  if (!std::isfinite(value)) return wrong("finite");
  const bool inside = value > scalar.above && value <= scalar.most;
  if (scalar.whole && (!inside || value != std::floor(value))) {
    return wrong(absl::StrCat("a whole number from ", scalar.above + 1, " to ", scalar.most));
  }
  return inside ? absl::OkStatus() : wrong(absl::StrCat("above ", scalar.above));
}

}  // namespace

SnapshotDims SnapshotDims::Of(const TaskModel& model) {
  const ControlAffineDims dims = model.dynamics->dims();
  return {static_cast<int>(model.spec.seen_dim()), static_cast<int>(model.spec.action_dim), dims.q + dims.x};
}

const MlpSpec& SnapshotForm::Net(absl::string_view name) const {
  return *std::find_if(nets.begin(), nets.end(), [name](const MlpSpec& net) { return net.net == name; });
}

bool HasNet(const Snapshot& snapshot, absl::string_view net) {
  return snapshot.Find(absl::StrCat(net, ".0.weight")) != nullptr;
}

double ScalarOf(const Snapshot& snapshot, absl::string_view name) { return snapshot.scalars.find(name)->second; }

std::vector<std::string> KnownConstraintNames(const Snapshot& snapshot) {
  std::vector<std::string> names;
  for (const auto& [name, value] : snapshot.scalars) {
    if (absl::StartsWith(name, kKnownPrefix)) names.push_back(name.substr(kKnownPrefix.size()));
  }
  return names;
}

absl::StatusOr<SnapshotCheck> SnapshotCheck::Make(const SnapshotForm& form, const Snapshot& snapshot) {
  SnapshotCheck check;
  check.rule_ = snapshot.acting_rule;
  check.scalars_ = form.scalars;
  for (const MlpSpec& net : form.nets) RETURN_IF_ERROR(check.AddNet(net, snapshot));
  for (const SnapshotForm::Vector& vector : form.vectors) {
    check.arrays_.push_back({vector.name, {static_cast<uint32_t>(vector.size)}, /*finite=*/true, vector.positive});
  }
  check.known_constraints_ = form.known_constraints;
  check.known_ = KnownConstraintNames(snapshot);
  RETURN_IF_ERROR(check.Check(snapshot));
  for (const SnapshotForm::Scalar& scalar : form.scalars) check.first_.push_back(ScalarOf(snapshot, scalar.name));
  return check;
}

// Takes depth and hidden widths from the snapshot.
absl::Status SnapshotCheck::AddNet(const MlpSpec& net, const Snapshot& snapshot) {
  if (net.gradient && net.outputs != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("net ", net.net, " has ", net.outputs, " outputs; a gradient needs 1"));
  }
  if (net.gradient && net.hidden != Mlp::Hidden::kRelu && net.hidden != Mlp::Hidden::kSigmoid) {
    return absl::InvalidArgumentError(absl::StrCat("net ", net.net, " has hidden units without a gradient"));
  }
  auto in = static_cast<uint32_t>(net.inputs);
  const auto outputs = static_cast<uint32_t>(net.outputs);
  for (int layer = 0;; ++layer) {
    const std::string name = absl::StrCat(net.net, ".", layer);
    const NamedArray* const weight = snapshot.Find(name + ".weight");
    if (weight == nullptr && layer > 0) break;
    const uint32_t out = weight != nullptr && weight->shape.size() == 2 ? weight->shape[1] : outputs;
    arrays_.push_back({name + ".weight", {in, out}});
    arrays_.push_back({name + ".bias", {out}});
    in = out;
  }
  if (in == outputs) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("array ", arrays_[arrays_.size() - 2].name, " has ", in, " columns, expected ", outputs));
}

absl::Status SnapshotCheck::Check(const Snapshot& snapshot) const {
  if (snapshot.acting_rule != rule_) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot is for acting rule \"", snapshot.acting_rule, "\", this one is \"", rule_, "\""));
  }
  for (const Array& array : arrays_) RETURN_IF_ERROR(CheckArray(array, snapshot));
  for (size_t i = 0; i < scalars_.size(); ++i) {
    RETURN_IF_ERROR(CheckScalar(scalars_[i], snapshot));
    if (!scalars_[i].fixed || first_.empty() || ScalarOf(snapshot, scalars_[i].name) == first_[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat("snapshot scalar ", scalars_[i].name, " = ",
                                                   ScalarOf(snapshot, scalars_[i].name),
                                                   ", but the run's first snapshot has ", first_[i]));
  }
  return known_constraints_ ? CheckKnownConstraints(snapshot) : absl::OkStatus();
}

absl::Status SnapshotCheck::CheckArray(const Array& array, const Snapshot& snapshot) const {
  const NamedArray* const found = snapshot.Find(array.name);
  if (found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot for acting rule \"", rule_, "\" has no array ", array.name));
  }
  size_t count = 1;
  for (const uint32_t extent : array.shape) count *= extent;
  if (found->shape != array.shape || found->values.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("array ", array.name, " has shape [",
                                                   absl::StrJoin(found->shape, ", "), "] and ", found->values.size(),
                                                   " values, expected [", absl::StrJoin(array.shape, ", "), "]"));
  }
  if (!array.finite) return absl::OkStatus();
  for (const float value : found->values) {
    if (std::isfinite(value) && (value > 0 || !array.positive)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("array ", array.name, " holds ", value, ", must be finite", array.positive ? " and above 0" : ""));
  }
  return absl::OkStatus();
}

absl::Status SnapshotCheck::CheckKnownConstraints(const Snapshot& snapshot) const {
  size_t found = 0;
  bool same = true;
  for (const auto& [name, value] : snapshot.scalars) {
    if (!absl::StartsWith(name, kKnownPrefix)) continue;
    same = same && found < known_.size() && absl::string_view(name).substr(kKnownPrefix.size()) == known_[found];
    ++found;
  }
  if (same && found == known_.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("snapshot joins the known constraints [",
                                                 absl::StrJoin(KnownConstraintNames(snapshot), ", "), "], not [",
                                                 absl::StrJoin(known_, ", "), "]"));
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
