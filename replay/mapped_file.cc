#include "replay/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom::replay {
namespace {

size_t PageBytes() {
  static const size_t bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// Reserves every block. The error for a full disk names the bytes needed and free.
absl::Status Reserve(int fd, const std::string& path, size_t bytes) {
  const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (error == 0) return absl::OkStatus();
  if (error != ENOSPC) return ErrnoStatus(error, "reserve " + path);
  return absl::ResourceExhaustedError(NoSpaceMessage(path, bytes) + "; make room or lower replay.capacity");
}

}  // namespace

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Map(int fd, const std::string& path, size_t bytes,
                                                            int protection) {
  void* data = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("map ", bytes, " bytes of ", path));
  return std::unique_ptr<MappedFile>(new MappedFile(path, static_cast<char*>(data), bytes));
}

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::OpenReadOnly(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open " + path);
  struct stat info;
  absl::Status status = ::fstat(fd, &info) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "stat " + path);
  if (status.ok() && info.st_size == 0) status = absl::DataLossError(path + " is empty");  // and cannot be mapped
  auto file = status.ok() ? Map(fd, path, static_cast<size_t>(info.st_size), PROT_READ)
                          : absl::StatusOr<std::unique_ptr<MappedFile>>(status);
  ::close(fd);
  return file;
}

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::OpenOrCreate(const std::string& path, size_t bytes,
                                                                     bool* created) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, "open " + path);
  struct stat info;
  absl::Status status = ::fstat(fd, &info) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "stat " + path);
  *created = status.ok() && info.st_size == 0;
  if (*created) {
    status = Reserve(fd, path, bytes);
    if (!status.ok()) ::unlink(path.c_str());
  }
  if (status.ok() && !*created) bytes = static_cast<size_t>(info.st_size);
  auto file =
      status.ok() ? Map(fd, path, bytes, PROT_READ | PROT_WRITE) : absl::StatusOr<std::unique_ptr<MappedFile>>(status);
  ::close(fd);
  return file;
}

absl::Status MappedFile::Grow(const std::string& path, size_t bytes) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open " + path);
  const absl::Status status = Reserve(fd, path, bytes);
  ::close(fd);
  return status;
}

MappedFile::~MappedFile() { ::munmap(data_, size_); }

absl::Status MappedFile::Sync(size_t offset, size_t bytes) const {
  const size_t begin = offset / PageBytes() * PageBytes();
  if (::msync(data_ + begin, offset + bytes - begin, MS_SYNC) != 0) return ErrnoStatus(errno, "msync " + path_);
  return absl::OkStatus();
}

absl::Status MappedFile::Rewrite(size_t offset, size_t bytes) {
  for (size_t at = offset / PageBytes() * PageBytes(); at < offset + bytes; at += PageBytes()) {
    volatile char* const byte = data_ + at;
    *byte = *byte;  // a store makes the page dirty
  }
  return Sync(offset, bytes);
}

void MappedFile::AdviseRandom() { ::madvise(data_, size_, MADV_RANDOM); }

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
