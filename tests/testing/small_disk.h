// A small file system to fill up: a tmpfs in a private mount namespace, so that nothing is left behind. Needs the right
// to mount; without it mounted() is false and why() gives the reason for skipping the test. Usable only on the thread
// that makes it; not thread-safe.
#ifndef DATACOM_TESTS_TESTING_SMALL_DISK_H_
#define DATACOM_TESTS_TESTING_SMALL_DISK_H_

#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/testing/temporary_folder.h"

namespace datacom::testing {

class SmallDisk {
 public:
  explicit SmallDisk(uint64_t bytes) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", path().c_str(), "tmpfs", 0, Size(bytes).c_str()) != 0) {
      why_ = std::string("no small disk can be mounted here: ") + std::strerror(errno);
    }
  }
  ~SmallDisk() {
    if (mounted()) ::umount2(path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return why_.empty(); }
  const std::string& why() const { return why_; }
  const std::string& path() const { return folder_.path(); }
  void Resize(uint64_t bytes) { ::mount("none", path().c_str(), "tmpfs", MS_REMOUNT, Size(bytes).c_str()); }
  // Fills the file system completely.
  void Fill() {
    std::ofstream file(path() + "/filler", std::ios::binary);
    const std::string page(4096, 'x');
    while (file.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
    }
  }
  void Free() { std::filesystem::remove(path() + "/filler"); }

 private:
  static std::string Size(uint64_t bytes) { return "size=" + std::to_string(bytes); }
  const TemporaryFolder folder_;
  std::string why_;
};

}  // namespace datacom::testing

#endif  // DATACOM_TESTS_TESTING_SMALL_DISK_H_
// SPDX-License-Identifier: Apache-2.0
