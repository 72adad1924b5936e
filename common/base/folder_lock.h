// One process per folder: an advisory lock on <folder>/lock that the kernel releases when the process dies.
// Owns the file descriptor; not thread-safe. Nothing blocks.
#ifndef DATACOM_COMMON_BASE_FOLDER_LOCK_H_
#define DATACOM_COMMON_BASE_FOLDER_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace datacom {

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
  explicit FolderLock(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_BASE_FOLDER_LOCK_H_
// SPDX-License-Identifier: Apache-2.0
