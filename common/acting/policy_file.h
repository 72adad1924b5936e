// One file with everything that a policy needs to act: `datacom export` writes it, a robot loads it.
//
// A frame (common/base/framed_file.h) around proto PolicyFile. Functions; thread-safe; block on the disk.
#ifndef DATACOM_COMMON_ACTING_POLICY_FILE_H_
#define DATACOM_COMMON_ACTING_POLICY_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/nn/snapshot.h"
#include "datacom/v1/policy.pb.h"

namespace datacom {

struct Policy {
  v1::PolicyFile about;  // without the snapshot's bytes
  Snapshot snapshot;
};

absl::Status WritePolicyFile(const std::string& path, const Policy& policy);
// NOT_FOUND and other disk errors; DATA_LOSS, naming the defect, for a file that is truncated, damaged or not a policy
// file, or has a weight that is not finite; FAILED_PRECONDITION, naming both versions, for a file of another version.
absl::StatusOr<Policy> ReadPolicyFile(const std::string& path);

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_POLICY_FILE_H_
// SPDX-License-Identifier: Apache-2.0
