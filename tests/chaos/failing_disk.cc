// Loaded into a process (LD_PRELOAD), makes msync fail once the file named by DATACOM_TEST_DISK_FAILS exists.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

extern "C" int msync(void* address, size_t bytes, int flags) {
  const char* trigger = std::getenv("DATACOM_TEST_DISK_FAILS");
  if (trigger == nullptr || ::access(trigger, F_OK) != 0)
    return static_cast<int>(::syscall(SYS_msync, address, bytes, flags));
  errno = EIO;
  return -1;
}
