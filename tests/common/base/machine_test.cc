#include "common/base/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "gtest/gtest.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

TEST(RaiseOpenFileLimit, LetsAProcessOpenMoreFilesThanItsSoftLimit) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{64, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(::dup2(0, 100), -1);
  EXPECT_EQ(RaiseOpenFileLimit(), before.rlim_max);
  EXPECT_EQ(::dup2(0, 100), 100);
  ::close(100);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(CheckProcessLimits, NamesTheLimitOfFileSizesAndItsValue) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit low{1 << 20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  EXPECT_TRUE(CheckProcessLimits(1 << 20).ok());
  const absl::Status status = CheckProcessLimits((1 << 20) + 1);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(status.message(), "this process may write files of 1048576 bytes (ulimit -f), its largest has 1048577");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
}

// A hard limit cannot be raised again, so another process has it.
void SayLimitsWithFewFiles() {
  rlimit low{};
  low.rlim_cur = low.rlim_max = 63;
  if (::setrlimit(RLIMIT_NOFILE, &low) == 0) std::cerr << CheckProcessLimits().message();
  std::exit(0);
}

TEST(CheckProcessLimits, NamesTheLimitOfOpenFilesAndItsValue) {
  EXPECT_TRUE(CheckProcessLimits().ok());
  EXPECT_EXIT(SayLimitsWithFewFiles(), ::testing::ExitedWithCode(0),
              "this process may have 63 files open .ulimit -Hn., it needs at least 64");
}

// A machine with control groups, as files below a folder.
class FakeGroups {
 public:
  void Write(const std::string& path, const std::string& text) const {
    const std::string file = root_.path() + path;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file) << text;
  }
  int Usable() const { return UsableProcessors(root_.path()); }
  uint64_t Available() const { return AvailableMemory(root_.path()); }

 private:
  testing::TemporaryFolder root_;
};

TEST(UsableProcessors, AreThoseOfTheAffinityWithoutAQuota) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(FakeGroups().Usable(), CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(FakeGroups().Usable(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(UsableProcessors, AreLimitedByTheSmallestQuotaOfTheGroupAndThoseAboveIt) {
  const int all = FakeGroups().Usable();
  FakeGroups second;
  second.Write("/proc/self/cgroup", "0::/pods/learner\n");
  second.Write("/sys/fs/cgroup/pods/learner/cpu.max", "max 100000\n");
  EXPECT_EQ(second.Usable(), all);
  second.Write("/sys/fs/cgroup/pods/cpu.max", "190000 100000\n");
  EXPECT_EQ(second.Usable(), 1);
  second.Write("/sys/fs/cgroup/pods/cpu.max", "50000 100000\n");
  EXPECT_EQ(second.Usable(), 1) << "less than one processor";

  FakeGroups container;  // sees its own group as the root
  container.Write("/proc/self/cgroup", "0::/\n");
  container.Write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(container.Usable(), 1);

  FakeGroups first;
  first.Write("/proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/docker/b\n");
  first.Write("/sys/fs/cgroup/cpu/docker/b/cpu.cfs_quota_us", "-1\n");
  first.Write("/sys/fs/cgroup/cpu/docker/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(first.Usable(), all);
  first.Write("/sys/fs/cgroup/cpu/docker/b/cpu.cfs_quota_us", "120000\n");
  EXPECT_EQ(first.Usable(), 1);
}

TEST(AvailableMemory, IsTheLeastOfTheMachineTheGroupAndThoseAboveIt) {
  EXPECT_EQ(FakeGroups().Available(), UINT64_MAX);
  FakeGroups second;
  second.Write("/proc/meminfo", "MemTotal:        9000 kB\nMemFree:            1 kB\nMemAvailable:    8000 kB\n");
  EXPECT_EQ(second.Available(), 8'192'000u);
  second.Write("/proc/self/cgroup", "0::/pods/learner\n");
  second.Write("/sys/fs/cgroup/pods/learner/memory.max", "max\n");
  second.Write("/sys/fs/cgroup/pods/learner/memory.current", "100\n");
  EXPECT_EQ(second.Available(), 8'192'000u);
  second.Write("/sys/fs/cgroup/pods/memory.max", "5000000\n");
  second.Write("/sys/fs/cgroup/pods/memory.current", "4000000\n");
  EXPECT_EQ(second.Available(), 1'000'000u);
  second.Write("/sys/fs/cgroup/pods/memory.stat", "anon 2500000\ninactive_file 600000\nactive_file 900000\n");
  EXPECT_EQ(second.Available(), 2'500'000u) << "the cache of files can be freed";
  second.Write("/sys/fs/cgroup/pods/memory.max", "1000000\n");
  EXPECT_EQ(second.Available(), 0u);

  FakeGroups first;
  first.Write("/proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/b\n");
  first.Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3000\n");
  first.Write("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "2000\n");
  first.Write("/sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
  EXPECT_EQ(first.Available(), 1500u);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
