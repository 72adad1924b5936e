// What DATACOM_FAILPOINT("name") (common/base/failpoint.h) does in the second set of programs.
//
// The environment variable DATACOM_FAILPOINT=name:N kills the process (SIGKILL) at the N-th pass. If
// DATACOM_FAILPOINT_COUNTER names a file, all processes that name it count their passes together, so that a process
// that is started again does not die again; the process that dies first creates the file COUNTER.reached. Thread-safe.
// Does not block.
#ifndef DATACOM_TESTS_CHAOS_FAILPOINT_H_
#define DATACOM_TESTS_CHAOS_FAILPOINT_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace datacom {

// The order that the environment gives this process.
class Failpoint {
 public:
  static const Failpoint& Ordered() {
    static const Failpoint failpoint;
    return failpoint;
  }
  void Pass(const char* name) const {
    if (name != name_ || std::atomic_ref<uint64_t>(*passes_).fetch_add(1) + 1 != deadly_) return;
    if (!counter_.empty()) ::close(::open((counter_ + ".reached").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ::kill(::getpid(), SIGKILL);
    ::pause();
  }

 private:
  Failpoint() {
    const char* order = std::getenv("DATACOM_FAILPOINT");
    if (order == nullptr) return;
    const std::string text = order;
    const size_t colon = text.rfind(':');
    if (colon == std::string::npos) return;
    name_ = text.substr(0, colon);
    deadly_ = std::strtoull(text.c_str() + colon + 1, nullptr, 10);
    if (const char* counter = std::getenv("DATACOM_FAILPOINT_COUNTER"); counter != nullptr) Share(counter);
  }
  void Share(const char* counter) {
    const int fd = ::open(counter, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || ::ftruncate(fd, sizeof *passes_) != 0) std::abort();
    void* shared = ::mmap(nullptr, sizeof *passes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) std::abort();
    ::close(fd);
    counter_ = counter;
    passes_ = static_cast<uint64_t*>(shared);
  }

  std::string name_, counter_;
  uint64_t deadly_ = 0;
  mutable uint64_t own_passes_ = 0;
  uint64_t* passes_ = &own_passes_;
};

}  // namespace datacom

#define DATACOM_FAILPOINT(name) ::datacom::Failpoint::Ordered().Pass(name)

#endif  // DATACOM_TESTS_CHAOS_FAILPOINT_H_
// SPDX-License-Identifier: Apache-2.0
