#include "common/base/framed_file.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom {
namespace {

uint32_t ChecksumOf(const FrameHeader& header, absl::string_view payload) {
  std::string start;
  PutValue(header.version, &start);
  PutValue(header.length, &start);
  return Crc32c(payload, Crc32c(start));
}

std::string Where(const FileFormat& format, const std::string& path) {
  return absl::StrCat(format.kind, " ", path, ": ");
}

absl::Status OtherVersion(const FileFormat& format, const std::string& path, uint32_t found) {
  return absl::FailedPreconditionError(absl::StrCat(Where(format, path), "format version ", found,
                                                    ", this build reads version ", format.version, format.advice));
}

absl::Status Damaged(const FileFormat& format, const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(Where(format, path), what));
}

}  // namespace

FrameHeader MakeFrameHeader(const FileFormat& format, absl::string_view payload) {
  FrameHeader header{};
  std::memcpy(header.magic, format.magic.data(), sizeof header.magic);
  header.version = format.version;
  header.length = payload.size();
  header.crc = ChecksumOf(header, payload);
  return header;
}

std::string Frame(const FileFormat& format, absl::string_view payload) {
  std::string content;
  content.reserve(sizeof(FrameHeader) + payload.size());
  PutValue(MakeFrameHeader(format, payload), &content);
  content.append(payload.data(), payload.size());
  return content;
}

absl::StatusOr<absl::string_view> Unframe(const FileFormat& format, const std::string& path,
                                          absl::string_view content) {
  const size_t bytes = content.size();
  FrameHeader header;
  if (!TakeValue(&content, &header))
    return Damaged(format, path, absl::StrCat("truncated: ", bytes, " bytes, its header alone has ", sizeof header));
  if (absl::string_view(header.magic, sizeof header.magic) != format.magic)
    return Damaged(format, path, absl::StrCat("not a ", format.kind, " of this program (its first bytes differ)"));
  if (content.size() < header.length) {
    return Damaged(format, path,
                   absl::StrCat("truncated or damaged: its header announces ", header.length, " bytes, ",
                                content.size(), " follow"));
  }
  const absl::string_view payload = content.substr(0, header.length);
  if (const uint32_t crc = ChecksumOf(header, payload); crc != header.crc) {
    return Damaged(format, path,
                   absl::StrCat("damaged: checksum ", absl::Hex(crc), ", its header states ", absl::Hex(header.crc)));
  }
  if (header.version != format.version) return OtherVersion(format, path, header.version);
  return payload;
}

Owner MakeOwner(absl::string_view run_id, uint32_t member) {
  Owner owner{};
  std::memcpy(owner.run_id, run_id.data(), std::min(run_id.size(), kMaxRunId));
  owner.member = member;
  return owner;
}

std::string RunOf(const Owner& owner) { return std::string(owner.run_id, strnlen(owner.run_id, sizeof owner.run_id)); }

absl::Status CheckOwner(const FileFormat& format, const std::string& path, const Owner& found, const Owner& expected) {
  if (std::memcmp(&found, &expected, sizeof found) == 0) return absl::OkStatus();
  const auto name = [](const Owner& owner) {
    return absl::StrCat(owner.member == kEveryMember ? "" : absl::StrCat("member ", owner.member, " of "), "run \"",
                        absl::Utf8SafeCHexEscape(RunOf(owner)), "\"");
  };
  return absl::FailedPreconditionError(absl::StrCat(Where(format, path), "belongs to ", name(found), ", not to ",
                                                    name(expected), "; restore it from a copy of this run"));
}

absl::Status WriteFramedFile(const FileFormat& format, const std::string& path, absl::string_view payload) {
  return WriteFileAtomically(path, Frame(format, payload));
}

absl::StatusOr<std::string> ReadFramedFile(const FileFormat& format, const std::string& path) {
  ASSIGN_OR_RETURN(const OpenedFile file, OpenedFile::Open(path));
  ASSIGN_OR_RETURN(std::string content, file.Read(0, sizeof(FrameHeader)));
  FrameHeader header{};
  std::memcpy(&header, content.data(), content.size());
  // Only what the header announces: a file of another kind, or one that was extended, may exceed the memory.
  if (absl::string_view(header.magic, sizeof header.magic) == format.magic) {
    const uint64_t end =
        header.length < file.size() ? sizeof header + header.length : file.size();  // the sum may overflow
    ASSIGN_OR_RETURN(content, file.Read(0, end));
  }
  RETURN_IF_ERROR(Unframe(format, path, content).status());
  if (file.size() > content.size()) {
    return Damaged(format, path, absl::StrCat(file.size() - content.size(), " bytes follow its last one"));
  }
  content.erase(0, sizeof(FrameHeader));
  return content;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
