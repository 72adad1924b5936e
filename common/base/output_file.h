// Files that a user names, for example with --out. One rule for all of them:
//
//   a regular file, or nothing   is replaced atomically (common/base/files.h), unless this user may not write the file
//   a symbolic link              stays; what it names follows these rules
//   a FIFO or a device           gets the bytes
//   "-", /dev/stdout             standard output gets the bytes
//   a folder, a socket           is refused
//
// Thread-safe for distinct paths. Every function blocks on the disk, and on the reader of a FIFO. Errors name the path.
#ifndef DATACOM_COMMON_BASE_OUTPUT_FILE_H_
#define DATACOM_COMMON_BASE_OUTPUT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace datacom {

// Whether the file is standard output, so that a verb's messages belong on standard error.
bool IsStandardOutput(const std::string& path);
// The file that a write replaces, without links; empty for what gets the bytes. INVALID_ARGUMENT or PERMISSION_DENIED
// for what is refused.
absl::StatusOr<std::string> ReplacedFile(const std::string& path);
// INVALID_ARGUMENT for a path that cannot be written, or is a file from which a run goes on, before a verb works for
// it. `option` begins the message.
absl::Status CheckOutputFile(const std::string& option, const std::string& path);
// INVALID_ARGUMENT, too, for bytes that are no text on a terminal.
absl::Status WriteOutputFile(const std::string& path, absl::string_view content);

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_OUTPUT_FILE_H_
// SPDX-License-Identifier: Apache-2.0
