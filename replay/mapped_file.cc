#include "replay/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

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
  struct stat info = {};
  const absl::StatusOr<uint64_t> free = FreeBytes(path);
  // Asked first: what a file system reserves before it is full stays reserved, and nobody else can write.
  const bool fits = !free.ok() || ::fstat(fd, &info) != 0 || static_cast<uint64_t>(info.st_size) + *free >= bytes;
  int error = fits ? EINTR : ENOSPC;
  while (error == EINTR) error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (error == 0) return absl::OkStatus();
  if (error != ENOSPC) return ErrnoStatus(error, "reserve " + path);
  return absl::ResourceExhaustedError(NoSpaceMessage(path, bytes) + "; make room or lower replay.capacity");
}

}  // namespace

// A file without content gets `bytes` zeros. With 0 bytes the file must have content and is not written. A copy of a
// file may have holes where the file had blocks: they are reserved, too.
absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Map(int fd, const std::string& path, size_t bytes,
                                                            bool* created) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "stat " + path);
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(path + " is not a regular file");
  const bool writable = bytes > 0;
  *created = info.st_size == 0;
  if (*created && !writable) return absl::DataLossError(path + " is empty");  // and cannot be mapped
  if (!*created) bytes = static_cast<size_t>(info.st_size);
  constexpr size_t kBlockBytes = 512;  // of st_blocks, on every file system
  if (writable && (*created || static_cast<size_t>(info.st_blocks) * kBlockBytes < bytes)) {
    const absl::Status status = Reserve(fd, path, bytes);
    if (!status.ok() && *created) ::unlink(path.c_str());
    RETURN_IF_ERROR(status);
  }
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("map ", bytes, " bytes of ", path));
  return std::unique_ptr<MappedFile>(new MappedFile(path, static_cast<char*>(data), bytes));
}

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(const std::string& path, int flags, size_t bytes,
                                                             bool* created) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0644);  // a pipe would block
  if (fd < 0) return ErrnoStatus(errno, "open " + path);
  auto file = Map(fd, path, bytes, created);
  ::close(fd);
  return file;
}

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::OpenReadOnly(const std::string& path) {
  bool created = false;
  return Open(path, O_RDONLY, 0, &created);
}

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::OpenOrCreate(const std::string& path, size_t bytes,
                                                                     bool* created) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return Open(path, O_RDWR | O_CREAT | O_NOFOLLOW, bytes, created);
  if (std::filesystem::file_size(path, error) > 0 && !error) return Open(path, O_RDWR, bytes, created);
  // Behind the link may be anything: the run folder may be a stranger's.
  return absl::InvalidArgumentError(path + " is a link, through which a new file is not begun");
}

absl::Status MappedFile::Grow(const std::string& path, size_t bytes) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open " + path);
  const absl::Status status = Reserve(fd, path, bytes);
  ::close(fd);
  return status;
}

MappedFile::~MappedFile() { ::munmap(data_, size_); }

std::string MappedFile::CopyWords(size_t bytes) const {
  std::string copy(bytes, '\0');
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
    const std::atomic_ref word(*reinterpret_cast<uint64_t*>(data_ + at));
    const uint64_t value = word.load(std::memory_order_acquire);
    std::memcpy(copy.data() + at, &value, sizeof value);
  }
  return copy;
}

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
