// A member's acting parameters at one version: named float32 arrays, scalars and the name of the rule that acts with
// them. Plain data; immutable once shared (std::shared_ptr<const Snapshot>).
#ifndef DATACOM_COMMON_NN_SNAPSHOT_H_
#define DATACOM_COMMON_NN_SNAPSHOT_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/nn/named_array.h"

namespace datacom {

struct SnapshotVersion {
  uint32_t incarnation = 0;  // grows by one at every start of the learner
  uint64_t update = 0;
  auto operator<=>(const SnapshotVersion&) const = default;
};

struct Snapshot {
  std::string run_id;
  uint64_t run_seed = 0;
  uint32_t member = 0;
  uint64_t member_seed = 0;
  SnapshotVersion version;
  std::string task;
  std::string acting_rule;
  std::vector<NamedArray> arrays;
  std::map<std::string, double, std::less<>> scalars;

  const NamedArray* Find(absl::string_view name) const;  // null when absent
  size_t data_bytes() const;                             // of the arrays' values
  // DATA_LOSS naming the first array with a number that is not finite, as those of a diverged member.
  absl::Status CheckFinite() const;
};

// A multi-layer perceptron `net` of L linear layers has the arrays "<net>.<i>.weight" [in, out] and "<net>.<i>.bias"
// [out], i = 0..L-1. Which nets, vectors and scalars a snapshot has is declared by its acting rule
// (common/acting/snapshot_form.h).

// Encoding for messages and files: a manifest and the data, with a CRC of both. Decoding returns DATA_LOSS or
// INVALID_ARGUMENT, naming the array, sizes or checksums, when they do not match. A file holds any number of snapshots
// (one per member).
std::string EncodeSnapshot(const Snapshot& snapshot);  // length-prefixed manifest, data
absl::StatusOr<Snapshot> DecodeSnapshot(absl::string_view encoded);
absl::Status WriteSnapshotFile(const std::string& path, const std::vector<Snapshot>& snapshots);
absl::StatusOr<std::vector<Snapshot>> ReadSnapshotFile(const std::string& path);

}  // namespace datacom

#endif  // DATACOM_COMMON_NN_SNAPSHOT_H_
// SPDX-License-Identifier: Apache-2.0
