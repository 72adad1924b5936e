// One file that holds all a policy needs to act: what `datacom export` writes and a robot loads.
//
// Layout, little-endian: "DCPOLICY", u32 form (kPolicyFileForm), u32 CRC-32 of the payload, u64 bytes of the payload,
// payload (proto PolicyFile). Functions; thread-safe; block on the disk.
#ifndef DATACOM_COMMON_ACTING_POLICY_FILE_H_
#define DATACOM_COMMON_ACTING_POLICY_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/nn/snapshot.h"
#include "datacom/v1/policy.pb.h"

namespace datacom {

inline constexpr uint32_t kPolicyFileForm = 1;

struct Policy {
  v1::PolicyFile about;  // without the snapshot's bytes
  Snapshot snapshot;
};

absl::Status WritePolicyFile(const std::string& path, const Policy& policy);
// NOT_FOUND and others of the disk; DATA_LOSS naming what is wrong with a file that is cut short, changed or no policy
// file at all; UNIMPLEMENTED naming both forms for a file of another one.
absl::StatusOr<Policy> ReadPolicyFile(const std::string& path);

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_POLICY_FILE_H_
