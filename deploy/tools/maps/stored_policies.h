// A file of the policies of a result: of each member the last epoch's and the best one's, in half precision
// (relative error at most 2^-11), which takes a quarter of two run folders' snapshots. A frame
// (common/base/framed_file.h) around proto StoredPolicies, compressed. It stands in for the folder `policies` of a run.
//
// Functions; thread-safe; they block on the disk.
#ifndef DATACOM_DEPLOY_TOOLS_MAPS_STORED_POLICIES_H_
#define DATACOM_DEPLOY_TOOLS_MAPS_STORED_POLICIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/nn/snapshot.h"

namespace datacom::tools {

inline constexpr char kStoredPolicies[] = "policies.stored";  // in the folder of a result

struct StoredPolicy {
  uint32_t epoch = 0;
  bool last = false, best = false;
  Snapshot snapshot;
};

// INVALID_ARGUMENT, naming array and value, for a weight that half precision cannot hold or that is not finite.
absl::Status WriteStoredPolicies(const std::string& path, const std::vector<StoredPolicy>& policies);
// NOT_FOUND without a file; FAILED_PRECONDITION for another version; DATA_LOSS for a damaged file.
absl::StatusOr<std::vector<StoredPolicy>> ReadStoredPolicies(const std::string& path);

}  // namespace datacom::tools

#endif  // DATACOM_DEPLOY_TOOLS_MAPS_STORED_POLICIES_H_
// SPDX-License-Identifier: Apache-2.0
