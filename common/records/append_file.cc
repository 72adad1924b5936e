#include "common/records/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom {
namespace {

constexpr size_t kBufferBytes = 1 << 16;

}  // namespace

absl::StatusOr<std::unique_ptr<AppendFile>> AppendFile::Open(const std::string& path, uint64_t offset) {
  const int flags = O_WRONLY | O_CLOEXEC | (offset == 0 ? O_CREAT : 0);
  const int fd = ::open(path.c_str(), flags, 0644);
  if (fd < 0) return ErrnoStatus(errno, "open " + path);
  std::unique_ptr<AppendFile> file(new AppendFile(path, fd, offset));
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "stat " + path);
  if (static_cast<uint64_t>(info.st_size) < offset) {
    return absl::DataLossError(absl::StrCat(path, " has ", info.st_size, " bytes, but ", offset, " were recorded"));
  }
  if (::ftruncate(fd, static_cast<off_t>(offset)) != 0) return ErrnoStatus(errno, "truncate " + path);
  if (::lseek(fd, 0, SEEK_END) < 0) return ErrnoStatus(errno, "seek " + path);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (offset == 0) RETURN_IF_ERROR(SyncFile(folder.empty() ? "." : folder));
  return file;
}

AppendFile::~AppendFile() {
  (void)Flush(false);
  ::close(fd_);
}

bool AppendFile::Writes(size_t bytes) const { return buffer_.size() + bytes >= kBufferBytes; }

absl::Status AppendFile::Append(absl::string_view data) {
  const bool full = Writes(data.size());
  buffer_.append(data.data(), data.size());
  offset_ += data.size();
  return full ? Flush(false) : absl::OkStatus();
}

absl::Status AppendFile::Flush(bool sync) {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t written = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      buffer_.erase(0, done);  // the next flush retries the rest
      if (error == ENOSPC) return absl::ResourceExhaustedError(NoSpaceMessage(path_, buffer_.size()));
      return ErrnoStatus(error, "write " + path_);
    }
    done += static_cast<size_t>(written);
  }
  buffer_.clear();
  if (sync && ::fsync(fd_) != 0) return ErrnoStatus(errno, "fsync " + path_);
  return absl::OkStatus();
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
