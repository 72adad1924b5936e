// Loaded into a process (LD_PRELOAD), makes its disk fail or hang, and records what a loss of power would leave
// (synced_state.h).
//
// DATACOM_TEST_DISK_FAILS names a file. While it exists, calls fail: each of its lines names a call (msync, fsync,
// rename, write, fallocate) and an error (EIO, ENOSPC); an empty file means "msync EIO". Only writes to regular files
// fail; every second one writes half before. While the file named by DATACOM_TEST_DISK_HANGS exists, msync hangs; it
// then makes a file of that name with ".reached".
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/chaos/synced_state.h"

using datacom::testing::OnFolderMade, datacom::testing::OnMapped, datacom::testing::OnUnmapped;
using datacom::testing::SyncFileOrFolder, datacom::testing::SyncMapping;

namespace {

// 0, or the error with which the call fails now.
int ErrorOf(const char* call) {
  const char* trigger = std::getenv("DATACOM_TEST_DISK_FAILS");
  if (trigger == nullptr) return 0;
  const int fd = ::open(trigger, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[256];
  const ssize_t bytes = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  text[std::max<ssize_t>(bytes, 0)] = '\0';
  if (text[0] == '\0') return std::strcmp(call, "msync") == 0 ? EIO : 0;
  const char* line = std::strstr(text, call);
  if (line == nullptr) return 0;
  return std::strncmp(line + std::strlen(call), " ENOSPC", 7) == 0 ? ENOSPC : EIO;
}

// Whether the call fails; then errno is set.
bool Fails(const char* call) {
  const int error = ErrorOf(call);
  if (error != 0) errno = error;
  return error != 0;
}

bool Hangs() {
  const char* trigger = std::getenv("DATACOM_TEST_DISK_HANGS");
  if (trigger == nullptr || ::access(trigger, F_OK) != 0) return false;
  const std::string reached = std::string(trigger) + ".reached";
  const int fd = ::open(reached.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
  return true;
}

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  const auto mapped = ::syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
  void* data = reinterpret_cast<void*>(mapped);  // NOLINT(performance-no-int-to-ptr)
  const bool shared = data != MAP_FAILED && fd >= 0 && (flags & MAP_TYPE) == MAP_SHARED;
  if (shared && (protection & PROT_WRITE) != 0) OnMapped(data, bytes, fd, offset);
  return data;
}

int munmap(void* address, size_t bytes) noexcept {
  OnUnmapped(address);
  return static_cast<int>(::syscall(SYS_munmap, address, bytes));
}

int msync(void* address, size_t bytes, int flags) {
  while (Hangs()) ::pause();
  return Fails("msync") ? -1 : SyncMapping(address, bytes, flags);
}

int fsync(int fd) { return Fails("fsync") ? -1 : SyncFileOrFolder(fd); }

int mkdir(const char* path, mode_t mode) noexcept {
  const int result = static_cast<int>(::syscall(SYS_mkdir, path, mode));
  if (result == 0) OnFolderMade(path);
  return result;
}

int rename(const char* from, const char* to) noexcept {
  return Fails("rename") ? -1 : static_cast<int>(::syscall(SYS_rename, from, to));
}

ssize_t write(int fd, const void* data, size_t bytes) {
  struct stat info;
  const bool regular =
      std::getenv("DATACOM_TEST_DISK_FAILS") != nullptr && ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  thread_local bool wrote_half = false;
  if (regular && Fails("write")) {
    wrote_half = !wrote_half && bytes > 1;
    if (!wrote_half) return -1;
    bytes /= 2;
  }
  return static_cast<ssize_t>(::syscall(SYS_write, fd, data, bytes));
}

int posix_fallocate(int fd, off_t offset, off_t bytes) {
  if (const int error = ErrorOf("fallocate"); error != 0) return error;
  static auto* const real = Real<int(int, off_t, off_t)>("posix_fallocate");
  return real(fd, offset, bytes);
}

}  // extern "C"
// SPDX-License-Identifier: Apache-2.0
