#include "tests/replay/test_disk.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <utility>

namespace datacom::replay::testing {

void PowerLoss::Synced(const void* address, size_t bytes) {
  if (living_ != nullptr) living_->Copy(reinterpret_cast<uintptr_t>(address), bytes);
}

void PowerLoss::Strike(const std::string& folder, RandomStream* random) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name != "credit" && name.rfind("member_", 0) != 0) continue;
    std::string& content = disk_[entry.path()];
    content.resize(entry.file_size());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string current{std::istreambuf_iterator<char>(file), {}};
    for (size_t at = 0; random != nullptr && at < content.size(); at += kPage) {
      if (content.compare(at, kPage, current, at, kPage) == 0 || random->Below(2) == 0) continue;
      content.replace(at, kPage, current, at, kPage);
    }
    std::ofstream(entry.path(), std::ios::binary) << content;
  }
}

void PowerLoss::Copy(uintptr_t address, size_t bytes) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0, offset = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx %*s %zx", &begin, &end, &offset) != 3) continue;
    if (address < begin || address >= end) continue;
    std::string& content = disk_[line.substr(line.find('/'))];
    const size_t at = address - begin + offset;
    if (content.size() < at + bytes) content.resize(at + bytes);
    content.replace(at, bytes, reinterpret_cast<const char*>(address), bytes);  // NOLINT(performance-no-int-to-ptr)
  }
}

}  // namespace datacom::replay::testing

// The content is in the page cache, where the next process finds it: the tests need no real disk.
extern "C" int msync(void* address, size_t bytes, int) {
  using datacom::replay::testing::disk;
  ++disk.syncs;
  if (disk.at_next_sync != nullptr) std::exchange(disk.at_next_sync, nullptr)();
  if (disk.fails || disk.syncs_left == 0) {
    errno = EIO;
    return -1;
  }
  if (disk.syncs_left > 0) --disk.syncs_left;
  datacom::replay::testing::PowerLoss::Synced(address, bytes);
  return 0;
}

extern "C" int posix_fallocate(int fd, off_t offset, off_t bytes) {
  if (datacom::replay::testing::disk.full) return ENOSPC;
  return ::syscall(SYS_fallocate, fd, 0, offset, bytes) == 0 ? 0 : errno;
}
// SPDX-License-Identifier: Apache-2.0
