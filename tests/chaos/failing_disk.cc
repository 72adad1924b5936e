// Loaded into a process (LD_PRELOAD), makes msync fail once the file named by DATACOM_TEST_DISK_FAILS exists, and hang
// once the file named by DATACOM_TEST_DISK_HANGS exists.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace {

bool Exists(const char* variable) {
  const char* trigger = std::getenv(variable);
  return trigger != nullptr && ::access(trigger, F_OK) == 0;
}

}  // namespace

extern "C" int msync(void* address, size_t bytes, int flags) {
  while (Exists("DATACOM_TEST_DISK_HANGS")) ::pause();
  if (!Exists("DATACOM_TEST_DISK_FAILS")) return static_cast<int>(::syscall(SYS_msync, address, bytes, flags));
  errno = EIO;
  return -1;
}
