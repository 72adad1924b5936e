#include "common/base/files.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/base/status.h"

namespace datacom {
namespace {

absl::Status WriteAndSync(int fd, absl::string_view content, const std::string& path) {
  const size_t bytes = content.size();
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == ENOSPC) return absl::ResourceExhaustedError(NoSpaceMessage(path, bytes));
      return ErrnoStatus(errno, "write " + path);
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  if (::fsync(fd) != 0) return ErrnoStatus(errno, "fsync " + path);
  return absl::OkStatus();
}

// Syncs the entry of a file or folder in the folder that holds it.
absl::Status SyncName(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return SyncFile(folder.empty() ? "." : folder);
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open " + path);
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      ::close(fd);
      return ErrnoStatus(error, "read " + path);
    }
    if (count == 0) break;
    content.append(buffer, static_cast<size_t>(count));
  }
  ::close(fd);
  return content;
}

bool FileExists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory) return ErrnoStatus(error.value(), "list " + path);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content) {
  const std::string temporary = path + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, "open " + temporary);
  absl::Status status = WriteAndSync(fd, content, temporary);
  ::close(fd);
  DATACOM_FAILPOINT("file.written");
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) status = ErrnoStatus(errno, "rename to " + path);
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  DATACOM_FAILPOINT("file.renamed");
  return SyncName(path);
}

absl::Status SyncFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open " + path);
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  return result == 0 ? absl::OkStatus() : ErrnoStatus(error, "fsync " + path);
}

absl::Status MakeFolders(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> missing;
  for (fs::path folder = path; !folder.empty() && !fs::exists(folder, error); folder = folder.parent_path()) {
    if (folder.has_filename()) missing.push_back(folder.string());
  }
  error.clear();
  fs::create_directories(path, error);
  if (error) return ErrnoStatus(error.value(), "create folder " + path);
  for (const std::string& folder : missing) RETURN_IF_ERROR(SyncName(folder));
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> FreeBytes(const std::string& path) {
  struct statvfs info;
  if (::statvfs(path.c_str(), &info) != 0) return ErrnoStatus(errno, "statvfs " + path);
  return uint64_t{info.f_bavail} * info.f_frsize;
}

std::string NoSpaceMessage(const std::string& path, uint64_t bytes) {
  const auto free = FreeBytes(std::filesystem::path(path).parent_path().string());
  return absl::StrCat("no disk space for ", path, ": ", bytes, " bytes are needed, ", free.ok() ? *free : 0,
                      " are free");
}

absl::Status WriteAddressFile(const std::string& path, const std::string& address) {
  return path.empty() ? absl::OkStatus() : WriteFileAtomically(path, address + "\n");
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
