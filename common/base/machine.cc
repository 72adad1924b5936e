#include "common/base/machine.h"

#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <new>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace datacom {

std::string ProcessorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (absl::StartsWith(line, "model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string HostName() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

uint64_t RaiseOpenFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

void EndWithoutMemory(int exit_code) {
  static int code;
  code = exit_code;
  std::set_new_handler([] {
    static constexpr char kMessage[] = "out of memory: the process needs more than its limit (ulimit -v)\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
    ::_exit(code);
  });
}

absl::Status CheckProcessLimits(uint64_t largest_file) {
  rlimit files{}, size{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max < kLeastOpenFiles) {
    return absl::ResourceExhaustedError(absl::StrCat("this process may have ", files.rlim_max,
                                                     " files open (ulimit -Hn), it needs at least ", kLeastOpenFiles));
  }
  if (::getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur < largest_file) {
    return absl::ResourceExhaustedError(absl::StrCat("this process may write files of ", size.rlim_cur,
                                                     " bytes (ulimit -f), its largest has ", largest_file));
  }
  return absl::OkStatus();
}

void ReturnLargeBlocks(int threshold_bytes) {
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_MMAP_THRESHOLD, threshold_bytes);
  ::mallopt(M_TRIM_THRESHOLD, threshold_bytes);
}

namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The quota of one control group in processors; negative: it has none.
double QuotaOf(const std::string& quota, const std::string& period) {
  double time = 0, per = 0;
  if (!absl::SimpleAtod(quota, &time) || !absl::SimpleAtod(period, &per) || time <= 0 || per <= 0) return -1;
  return time / per;
}

// Calls `visit` with the folder of each control group of this process that has the controller, and of all groups above
// them, and with whether it is of version 2.
template <typename Visit>
void VisitGroups(const std::string& root, const std::string& controller, const Visit& visit) {
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:cpu,cpuacct:/path", in version 2 "0::/path"
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    const bool version2 = parts[1].empty();
    if (!version2 && std::find(controllers.begin(), controllers.end(), controller) == controllers.end()) continue;
    const std::string folder = root + "/sys/fs/cgroup" + (version2 ? "" : "/" + controller);
    std::string path = parts[2] == "/" ? "" : parts[2];
    for (; !path.empty() && path[0] == '/'; path.resize(path.rfind('/'))) visit(folder + path + "/", version2);
    visit(folder + "/", version2);
  }
}

// The number behind a name in a file of lines "name number"; 0 without it.
uint64_t NumberIn(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t number = 0;
    if (words.size() > 1 && words[0] == name && absl::SimpleAtoi(words[1], &number)) return number;
  }
  return 0;
}

// What is left of the group's memory; the cache of files counts as free. Unlimited without a limit.
uint64_t LeftInGroup(const std::string& folder, bool version2) {
  uint64_t limit = 0, used = 0;
  if (!absl::SimpleAtoi(FirstLine(folder + (version2 ? "memory.max" : "memory.limit_in_bytes")), &limit) ||
      !absl::SimpleAtoi(FirstLine(folder + (version2 ? "memory.current" : "memory.usage_in_bytes")), &used)) {
    return UINT64_MAX;
  }
  const std::string total = version2 ? "" : "total_", stat = folder + "memory.stat";
  used -= std::min(used, NumberIn(stat, total + "inactive_file") + NumberIn(stat, total + "active_file"));
  return limit - std::min(limit, used);
}

}  // namespace

int UsableProcessors(const std::string& root) {
  cpu_set_t set;
  int processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  // Version 2 has one file, "quota period"; version 1 has two.
  VisitGroups(root, "cpu", [&processors](const std::string& folder, bool version2) {
    const std::vector<std::string> max = absl::StrSplit(FirstLine(folder + "cpu.max"), ' ');
    const double quota = version2
                             ? (max.size() == 2 ? QuotaOf(max[0], max[1]) : -1)
                             : QuotaOf(FirstLine(folder + "cpu.cfs_quota_us"), FirstLine(folder + "cpu.cfs_period_us"));
    if (quota > 0 && quota < processors) processors = static_cast<int>(quota);
  });
  return std::max(processors, 1);
}

uint64_t AvailableMemory(const std::string& root) {
  const uint64_t kilobytes = NumberIn(root + "/proc/meminfo", "MemAvailable:");
  uint64_t available = kilobytes == 0 ? UINT64_MAX : kilobytes * 1024;
  VisitGroups(root, "memory", [&available](const std::string& folder, bool version2) {
    available = std::min(available, LeftInGroup(folder, version2));
  });
  return available;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
