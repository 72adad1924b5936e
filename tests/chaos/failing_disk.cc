// Loaded into a process (LD_PRELOAD), makes its disk fail, hang, or remember what a loss of power would leave.
//
// DATACOM_TEST_DISK_FAILS names a file. While it exists, calls fail: each of its lines names a call (msync, fsync,
// rename, write, fallocate) and an error (EIO, ENOSPC); an empty file means "msync EIO". Only writes to regular files
// fail; every second one writes half before. While the file named by DATACOM_TEST_DISK_HANGS exists, msync hangs.
//
// DATACOM_TEST_DISK_SHADOW names a folder. For each file that is mapped shared and writable it holds a file of the same
// name with what is certain to be on the disk: the content at the first mapping, then each range that msync has
// written.
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
#include <mutex>
#include <string>

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
  return trigger != nullptr && ::access(trigger, F_OK) == 0;
}

struct Mapping {
  char* data;
  size_t bytes;
  off_t offset;
  int shadow;
};

std::mutex mutex;
Mapping mappings[64];
int mapping_count = 0;

// Opens the shadow of an open file, or creates it with the file's content.
int OpenShadow(int fd, const char* folder) {
  char path[4096];
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path - 1);
  struct stat info;
  if (length <= 0 || ::fstat(fd, &info) != 0) return -1;
  path[length] = '\0';
  const std::string shadow = std::string(folder) + std::strrchr(path, '/');
  const bool known = ::access(shadow.c_str(), F_OK) == 0;
  const int copy = ::open(shadow.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  char buffer[1 << 14];
  ssize_t count = 0;
  for (off_t at = 0; !known && (count = ::pread(fd, buffer, sizeof buffer, at)) > 0; at += count) {
    if (::pwrite(copy, buffer, static_cast<size_t>(count), at) != count) std::abort();
  }
  if (::ftruncate(copy, info.st_size) != 0) std::abort();
  return copy;
}

void Remember(void* data, size_t bytes, int fd, off_t offset) {
  const char* folder = std::getenv("DATACOM_TEST_DISK_SHADOW");
  if (folder == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex);
  if (mapping_count == static_cast<int>(std::size(mappings))) std::abort();
  mappings[mapping_count++] = {static_cast<char*>(data), bytes, offset, OpenShadow(fd, folder)};
}

void CopySynced(char* begin, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (int i = 0; i < mapping_count; ++i) {
    const Mapping& mapping = mappings[i];
    if (begin < mapping.data || begin >= mapping.data + mapping.bytes) continue;
    const off_t at = begin - mapping.data;
    const size_t inside = std::min(bytes, mapping.bytes - static_cast<size_t>(at));
    if (::pwrite(mapping.shadow, begin, inside, mapping.offset + at) != static_cast<ssize_t>(inside)) std::abort();
  }
}

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  void* data = reinterpret_cast<void*>(::syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
  const bool shared = data != MAP_FAILED && fd >= 0 && (flags & MAP_TYPE) == MAP_SHARED;
  if (shared && (protection & PROT_WRITE) != 0) Remember(data, bytes, fd, offset);
  return data;
}

int munmap(void* address, size_t bytes) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    for (int i = 0; i < mapping_count; ++i) {
      if (mappings[i].data != address) continue;
      ::close(mappings[i].shadow);
      mappings[i] = mappings[--mapping_count];
      break;
    }
  }
  return static_cast<int>(::syscall(SYS_munmap, address, bytes));
}

int msync(void* address, size_t bytes, int flags) {
  while (Hangs()) ::pause();
  if (Fails("msync")) return -1;
  const int result = static_cast<int>(::syscall(SYS_msync, address, bytes, flags));
  if (result == 0) CopySynced(static_cast<char*>(address), bytes);
  return result;
}

int fsync(int fd) { return Fails("fsync") ? -1 : static_cast<int>(::syscall(SYS_fsync, fd)); }

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
