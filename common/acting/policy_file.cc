#include "common/acting/policy_file.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom {
namespace {

constexpr char kMagic[] = "DCPOLICY";
constexpr size_t kMagicBytes = 8;

// What follows the magic.
struct Head {
  uint32_t format = kPolicyFileFormat;
  uint32_t crc = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(Head) == 16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "copied byte by byte");

// The payload of a whole file.
absl::StatusOr<absl::string_view> Payload(absl::string_view content) {
  if (content.substr(0, kMagicBytes) != absl::string_view(kMagic, kMagicBytes)) {
    return absl::DataLossError(absl::StrCat("not a policy file: it does not start with ", kMagic));
  }
  Head head;
  if (content.size() < kMagicBytes + sizeof head) {
    return absl::DataLossError(absl::StrCat("truncated in its header, after ", content.size(), " bytes"));
  }
  std::memcpy(&head, content.data() + kMagicBytes, sizeof head);
  if (head.format != kPolicyFileFormat) {
    return absl::UnimplementedError(
        absl::StrCat("policy file of format ", head.format, ", this build reads format ", kPolicyFileFormat));
  }
  content.remove_prefix(kMagicBytes + sizeof head);
  if (content.size() != head.bytes) {
    return absl::DataLossError(
        absl::StrCat("its header states ", head.bytes, " bytes, but ", content.size(), " follow"));
  }
  if (const uint32_t crc = Crc32(content); crc != head.crc) {
    return absl::DataLossError(
        absl::StrCat("its content has checksum ", absl::Hex(crc), ", its header states ", absl::Hex(head.crc)));
  }
  return content;
}

absl::StatusOr<Policy> Decode(absl::string_view content) {
  ASSIGN_OR_RETURN(const absl::string_view payload, Payload(content));
  Policy policy;
  if (!policy.about.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return absl::DataLossError(absl::StrCat("its content of ", payload.size(), " bytes cannot be parsed"));
  }
  ASSIGN_OR_RETURN(policy.snapshot, DecodeSnapshot(policy.about.snapshot()));
  policy.about.clear_snapshot();
  return policy;
}

}  // namespace

absl::Status WritePolicyFile(const std::string& path, const Policy& policy) {
  v1::PolicyFile file = policy.about;
  file.set_snapshot(EncodeSnapshot(policy.snapshot));
  const std::string payload = file.SerializeAsString();
  Head head;
  head.crc = Crc32(payload);
  head.bytes = payload.size();
  std::string content(kMagic, kMagicBytes);
  content.append(reinterpret_cast<const char*>(&head), sizeof head);
  return WriteFileAtomically(path, content.append(payload));
}

absl::StatusOr<Policy> ReadPolicyFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  absl::StatusOr<Policy> policy = Decode(content);
  if (!policy.ok()) return Annotate(policy.status(), path);
  return policy;
}

}  // namespace datacom
