// The frame of every binary file that a run keeps: which kind of file it is, its format version, and a checksum.
//
//   magic 8 bytes | version u32 | CRC-32C u32 (of version, length, payload) | length u64 | payload
//
// Little-endian. Files that are written whole hold nothing else. In files that grow (rings, credit, ledger) the payload
// names what follows, which has checksums of its own. Thread-safe for distinct paths; reading and writing block on the
// disk. Errors name the kind of file, its path and what differs:
//   FAILED_PRECONDITION  a file of another version
//   DATA_LOSS            another kind of file, a truncated file, a wrong checksum
#ifndef DATACOM_COMMON_BASE_FRAMED_FILE_H_
#define DATACOM_COMMON_BASE_FRAMED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace datacom {

struct FileFormat {
  absl::string_view kind;    // "checkpoint", for messages
  absl::string_view magic;   // 8 bytes
  uint32_t version = 1;      // grows with every change of what the payload or the rest of the file holds
  absl::string_view advice;  // what to do with a file of another version
};

struct FrameHeader {
  char magic[8];
  uint32_t version;
  uint32_t crc;
  uint64_t length;
};
static_assert(sizeof(FrameHeader) == 24);

// The header of a payload. A payload that is changed in place needs a new header.
FrameHeader MakeFrameHeader(const FileFormat& format, absl::string_view payload);
// The header and the payload.
std::string Frame(const FileFormat& format, absl::string_view payload);
// The payload of a file that begins with `content`; the rest of the file follows it. `path` is for messages.
absl::StatusOr<absl::string_view> Unframe(const FileFormat& format, const std::string& path, absl::string_view content);

// Replaces the file atomically (common/base/files.h).
absl::Status WriteFramedFile(const FileFormat& format, const std::string& path, absl::string_view payload);
// The payload of a file that holds nothing else; NOT_FOUND when there is no file.
absl::StatusOr<std::string> ReadFramedFile(const FileFormat& format, const std::string& path);

// Whose a file is: part of the payload of each file that grows. Zeros pad the id.
struct Owner {
  char run_id[256];
  uint32_t member;
  uint32_t unused;
};
inline constexpr uint32_t kEveryMember = UINT32_MAX;
inline constexpr size_t kMaxRunId = sizeof(Owner::run_id) - 1;

// REQUIRES at most kMaxRunId bytes.
Owner MakeOwner(absl::string_view run_id, uint32_t member);
std::string RunOf(const Owner& owner);
// FAILED_PRECONDITION, naming the file and both owners, if they differ.
absl::Status CheckOwner(const FileFormat& format, const std::string& path, const Owner& found, const Owner& expected);

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_FRAMED_FILE_H_
// SPDX-License-Identifier: Apache-2.0
