#include "common/acting/policy_file.h"

#include "absl/strings/str_cat.h"
#include "common/base/framed_file.h"
#include "common/base/output_file.h"
#include "common/base/status.h"

namespace datacom {
namespace {

constexpr FileFormat kFormat = {"policy file", "DCPOLIC2", 3, "; export it again with this build"};

absl::StatusOr<Policy> Decode(const std::string& payload) {
  Policy policy;
  if (!policy.about.ParseFromString(payload)) {
    return absl::DataLossError(absl::StrCat("its content of ", payload.size(), " bytes cannot be parsed"));
  }
  ASSIGN_OR_RETURN(policy.snapshot, DecodeSnapshot(policy.about.snapshot()));
  policy.about.clear_snapshot();
  RETURN_IF_ERROR(policy.snapshot.CheckFinite());
  return policy;
}

}  // namespace

absl::Status WritePolicyFile(const std::string& path, const Policy& policy) {
  v1::PolicyFile file = policy.about;
  file.set_snapshot(EncodeSnapshot(policy.snapshot));
  return WriteOutputFile(path, Frame(kFormat, file.SerializeAsString()));
}

absl::StatusOr<Policy> ReadPolicyFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string payload, ReadFramedFile(kFormat, path));
  return Annotate(Decode(payload), path);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
