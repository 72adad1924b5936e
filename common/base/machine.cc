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

// The smallest quota of the group at `path` below `folder` and of those above it. Version 2 has one file, "quota
// period"; version 1 has two.
double SmallestQuota(const std::string& folder, std::string path, bool version2) {
  double smallest = -1;
  for (;;) {
    const std::string at = folder + path + "/";
    const std::vector<std::string> max = absl::StrSplit(FirstLine(at + "cpu.max"), ' ');
    const double quota = version2 ? (max.size() == 2 ? QuotaOf(max[0], max[1]) : -1)
                                  : QuotaOf(FirstLine(at + "cpu.cfs_quota_us"), FirstLine(at + "cpu.cfs_period_us"));
    if (quota > 0 && (smallest < 0 || quota < smallest)) smallest = quota;
    if (path.empty()) return smallest;
    path.resize(path.rfind('/'));
  }
}

}  // namespace

int UsableProcessors(const std::string& root) {
  cpu_set_t set;
  int processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:cpu,cpuacct:/path", in version 2 "0::/path"
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    const bool version2 = parts[1].empty();
    if (!version2 && std::find(controllers.begin(), controllers.end(), "cpu") == controllers.end()) continue;
    const std::string path = parts[2] == "/" ? "" : parts[2];
    const double quota = SmallestQuota(root + (version2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu"), path, version2);
    if (quota > 0) processors = std::min(processors, static_cast<int>(quota));
  }
  return std::max(processors, 1);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
