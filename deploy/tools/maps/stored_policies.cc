#include "deploy/tools/maps/stored_policies.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "Eigen/Core"
#include "absl/strings/str_cat.h"
#include "common/base/framed_file.h"
#include "common/base/status.h"
#include "common/nn/snapshot_proto.h"
#include "common/records/gzip.h"
#include "datacom/v1/stored_policies.pb.h"

namespace datacom::tools {
namespace {

constexpr FileFormat kFormat = {"file of stored policies", "DCMSTORE", 1,
                                "play it with the revision that wrote it, see build.txt beside it"};
constexpr size_t kMostBytes = 256 << 20;

// Rounds the arrays to half precision and appends these values.
absl::Status Round(Snapshot* snapshot, std::string* half) {
  for (NamedArray& array : snapshot->arrays) {
    for (float& value : array.values) {
      const auto rounded = static_cast<Eigen::half>(value);
      if (!std::isfinite(static_cast<float>(rounded))) {
        return absl::InvalidArgumentError(absl::StrCat("member ", snapshot->member, ": ", array.name, " has the value ",
                                                       value, ", which half precision cannot hold"));
      }
      value = static_cast<float>(rounded);
      half->append(reinterpret_cast<const char*>(&rounded.x), sizeof rounded.x);
    }
  }
  return absl::OkStatus();
}

// The data of a snapshot, float32, from its values in half precision.
std::string Widen(const std::string& half) {
  std::string data(2 * half.size(), '\0');
  for (size_t i = 0; 2 * i + 1 < half.size(); ++i) {
    Eigen::half value;
    std::memcpy(&value.x, &half[2 * i], sizeof value.x);
    const auto wide = static_cast<float>(value);
    std::memcpy(&data[4 * i], &wide, sizeof wide);
  }
  return data;
}

}  // namespace

absl::Status WriteStoredPolicies(const std::string& path, const std::vector<StoredPolicy>& policies) {
  v1::StoredPolicies stored;
  for (const StoredPolicy& policy : policies) {
    v1::StoredPolicy* const to = stored.add_policy();
    to->set_epoch(policy.epoch);
    to->set_last(policy.last);
    to->set_best(policy.best);
    Snapshot rounded = policy.snapshot;
    RETURN_IF_ERROR(Round(&rounded, to->mutable_half()));
    std::string data;  // the reader makes it from `half`
    *to->mutable_manifest() = MakeManifest(rounded, &data);
  }
  return WriteFramedFile(kFormat, path, Gzip(stored.SerializeAsString()));
}

absl::StatusOr<std::vector<StoredPolicy>> ReadStoredPolicies(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string compressed, ReadFramedFile(kFormat, path));
  const absl::StatusOr<std::string> content = Gunzip(compressed, kMostBytes);
  if (!content.ok()) return Annotate(content.status(), path);
  v1::StoredPolicies stored;
  if (!stored.ParseFromString(*content)) return absl::DataLossError(absl::StrCat(path, ": it has no policies"));
  std::vector<StoredPolicy> policies;
  for (const v1::StoredPolicy& from : stored.policy()) {
    absl::StatusOr<Snapshot> snapshot = SnapshotFromManifest(from.manifest(), Widen(from.half()));
    if (!snapshot.ok()) return Annotate(snapshot.status(), path);
    policies.push_back({from.epoch(), from.last(), from.best(), *std::move(snapshot)});
  }
  return policies;
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
