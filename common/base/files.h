// File helpers. WriteFileAtomically leaves a file complete or absent: temporary name, fsync, rename, fsync the folder.
// Thread-safe for distinct paths. Every function blocks on the disk. Errors name the path.
#ifndef DATACOM_COMMON_BASE_FILES_H_
#define DATACOM_COMMON_BASE_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace datacom {

// What is behind a link in a stranger's folder may be anything of the user's.
enum class Links { kFollow, kRefuse };

// A regular file that is open for reading: one version of it, also if another one takes its name meanwhile. Owns the
// descriptor. Thread-safe.
class OpenedFile {
 public:
  // INVALID_ARGUMENT for what is not a regular file (a folder, a pipe, a device), which is not waited for, and for a
  // link that is refused.
  static absl::StatusOr<OpenedFile> Open(const std::string& path, Links links = Links::kFollow);
  OpenedFile(OpenedFile&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}
  OpenedFile& operator=(OpenedFile&&) = delete;
  ~OpenedFile();
  uint64_t size() const { return size_; }  // when it was opened
  // Bytes [from, to), or those before the end of the file. RESOURCE_EXHAUSTED for more than the free memory.
  absl::StatusOr<std::string> Read(uint64_t from, uint64_t to) const;

 private:
  OpenedFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
  uint64_t size_ = 0;
};

// INVALID_ARGUMENT as OpenedFile::Open, for a file of more than `most` bytes, and for one of the kernel without an end.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t most = UINT64_MAX);
// False also when that cannot be found out; the call that needs the file then names the error.
bool FileExists(const std::string& path);
bool IsFolder(const std::string& path);  // likewise
// Names in a folder, sorted. An empty list for a folder that does not exist.
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);
// INVALID_ARGUMENT, naming `option` and what is wrong, for a folder that a run cannot have: a name of more than 255
// bytes, a control character, or bytes that are not UTF-8.
absl::Status CheckFolderName(const std::string& option, const std::string& path);
// Writes to an open file and takes from `content` what is written. Returns 0, or errno.
int WriteAll(int fd, absl::string_view* content);
// Replaces `path` atomically and keeps its mode and, where this user may, its owner; on error the old content stays.
// Never writes through a link that has the temporary name. Of several writers at once, also in other processes, the
// last one's content stays, whole.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);
std::string ParentFolder(const std::string& path);  // the folder of a file or folder; "." for a name alone
absl::Status SyncFile(const std::string& path);     // also for folders, where the file system can
absl::Status SyncName(const std::string& path);     // the name in its parent folder
absl::Status MakeFolders(const std::string& path);  // with all parents; syncs the names of those that it makes
absl::Status MakeFolder(const std::string& path);   // without parents: NOT_FOUND where there is none
// Without "." and double slashes. ".." behind a link to a folder is the parent of that folder; other links stay.
std::string NormalPath(const std::string& path);
std::string AbsolutePath(const std::string& path);   // a NormalPath; relative without a working folder
absl::StatusOr<std::string> TemporaryFolder();       // NOT_FOUND, naming TMPDIR, when there is none
std::string WithoutSlash(std::string path);          // at its end, unless it is the root
inline constexpr uint64_t kUnknownSize = INT64_MAX;  // enough for everything
// Of the file system that holds path; kUnknownSize where it does not tell.
absl::StatusOr<uint64_t> FreeBytes(const std::string& path);
// "no disk space for P: N bytes are needed, M are free", for a file in an existing folder.
std::string NoSpaceMessage(const std::string& path, uint64_t bytes);
// For --address-file: writes one line with the address that a process bound. Does nothing when `path` is empty.
absl::Status WriteAddressFile(const std::string& path, const std::string& address);

// One process per folder: an advisory lock on <folder>/lock, and on the folder, that the kernel releases when the
// process dies. Owns the file descriptors; not thread-safe. Nothing waits.
class FolderLock {
 public:
  // FAILED_PRECONDITION naming the folder when another process holds it.
  static absl::StatusOr<std::unique_ptr<FolderLock>> Take(const std::string& folder);
  // Takes the lock of an existing lock file, or of a folder by itself; NOT_FOUND when there is none.
  static absl::StatusOr<std::unique_ptr<FolderLock>> TakeFile(const std::string& path);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(int file) : file_(file) {}
  // Takes the lock of a file that was just opened; `held` says that another process has it.
  static absl::StatusOr<std::unique_ptr<FolderLock>> Lock(int fd, const std::string& path, const std::string& held);
  const int file_;
  int folder_ = -1;  // of Take
};

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_FILES_H_
// SPDX-License-Identifier: Apache-2.0
