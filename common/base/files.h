// File helpers. WriteFileAtomically leaves a file complete or absent: temporary name, fsync, rename, fsync the folder.
// Thread-safe for distinct paths. Every function blocks on the disk. Errors name the path.
#ifndef DATACOM_COMMON_BASE_FILES_H_
#define DATACOM_COMMON_BASE_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace datacom {

absl::StatusOr<std::string> ReadFile(const std::string& path);
// False also when that cannot be found out; the call that needs the file then names the error.
bool FileExists(const std::string& path);
// Names in a folder, sorted. An empty list for a folder that does not exist.
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);
// Replaces `path` atomically; on error the old content stays.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);
absl::Status SyncFile(const std::string& path);     // also for folders
absl::Status MakeFolders(const std::string& path);  // with all parents; syncs the names of those that it makes
absl::StatusOr<uint64_t> FreeBytes(const std::string& path);  // of the file system that holds path
// "no disk space for P: N bytes are needed, M are free", for a file in an existing folder.
std::string NoSpaceMessage(const std::string& path, uint64_t bytes);
// For --address-file: writes one line with the address that a process bound. Does nothing when `path` is empty.
absl::Status WriteAddressFile(const std::string& path, const std::string& address);

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_FILES_H_
// SPDX-License-Identifier: Apache-2.0
