#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "common/base/changes.h"
#include "common/base/checksum.h"
#include "common/base/files.h"
#include "common/base/machine.h"
#include "common/base/mutex.h"
#include "common/base/stall.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/base/version.h"
#include "gtest/gtest.h"

namespace datacom {
namespace {

class Files : public ::testing::Test {
 protected:
  Files() {
    std::string name = (std::filesystem::temp_directory_path() / "datacom_files_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(Files, WritesAtomicallyAndLeavesNoTemporaryFile) {
  const std::string path = folder_ + "/state";
  ASSERT_TRUE(WriteFileAtomically(path, "first").ok());
  ASSERT_TRUE(WriteFileAtomically(path, std::string("sec\0nd", 6)).ok());
  EXPECT_EQ(ReadFile(path).value(), std::string("sec\0nd", 6));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, KeepsTheOldContentWhenWritingFails) {
  const std::string path = folder_ + "/state";
  ASSERT_TRUE(WriteFileAtomically(path, "old").ok());
  std::filesystem::create_directory(path + ".tmp");  // the temporary name cannot be opened for writing
  const absl::Status status = WriteFileAtomically(path, "new");
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(absl::StrContains(status.message(), path)) << status;
  EXPECT_EQ(ReadFile(path).value(), "old");
}

TEST_F(Files, RemovesTheTemporaryFileWhenTheNameCannotBeTaken) {
  const std::string path = folder_ + "/taken";
  std::filesystem::create_directories(path + "/inside");  // rename onto a folder fails
  EXPECT_FALSE(WriteFileAtomically(path, "x").ok());
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST_F(Files, NamesTheMissingFile) {
  const absl::Status status = ReadFile(folder_ + "/none").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), folder_ + "/none")) << status;
}

TEST_F(Files, ListsNamesSortedAndNothingWhereThereIsNoFolder) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/b", "").ok());
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/a", "").ok());
  EXPECT_EQ(ListFolder(folder_).value(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(ListFolder(folder_ + "/none").value().empty());
  EXPECT_FALSE(ListFolder(folder_ + "/a").ok());
  EXPECT_TRUE(FileExists(folder_ + "/a"));
  EXPECT_FALSE(FileExists(folder_ + "/a/b"));
}

TEST_F(Files, MakesFoldersAndMeasuresFreeSpace) {
  ASSERT_TRUE(MakeFolders(folder_ + "/a/b/c").ok());
  ASSERT_TRUE(MakeFolders(folder_ + "/a/b/c").ok()) << "making it again is not an error";
  EXPECT_GT(FreeBytes(folder_ + "/a").value(), 0u);
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/file", "").ok());
  EXPECT_FALSE(MakeFolders(folder_ + "/file/sub").ok());
}

TEST(Crc32c, GivesTheCheckValuesOfItsDefinition) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720 B.4
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c("6789", Crc32c("12345")), 0xe3069283u) << "in two pieces";
}

TEST(Status, ErrnoGivesACodeAndAMessage) {
  EXPECT_EQ(ErrnoStatus(ENOENT, "open x").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrnoStatus(ENOSPC, "write x").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(EACCES, "open x").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrnoStatus(EEXIST, "make x").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ErrnoStatus(EIO, "read x").code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ErrnoStatus(ENOSPC, "write x").message(), "write x: No space left on device");
}

TEST(Status, AnnotationKeepsTheCode) {
  EXPECT_TRUE(Annotate(absl::OkStatus(), "ring").ok());
  EXPECT_EQ(Annotate(absl::DataLossError("torn"), "ring a"), absl::DataLossError("ring a: torn"));
}

TEST(Status, MapsToExitCodes) {
  EXPECT_EQ(ExitCode(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCode(absl::InvalidArgumentError("x")), 2);
  EXPECT_EQ(ExitCode(absl::FailedPreconditionError("x")), 2);
  EXPECT_EQ(ExitCode(absl::DataLossError("x")), 2);
  EXPECT_EQ(ExitCode(absl::CancelledError("x")), 75);
  EXPECT_EQ(ExitCode(absl::InternalError("x")), 1);
}

TEST(CondVar, WakesTheWaiterAndTimesOutWithoutOne) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  std::thread other([&] {
    MutexLock lock(&mutex);
    ready = true;
    changed.NotifyAll();
  });
  {
    MutexLock lock(&mutex);
    while (!ready) changed.Wait(&mutex);
    EXPECT_FALSE(changed.WaitFor(&mutex, std::chrono::nanoseconds(1)));
  }
  other.join();
}

// Runs `child` in a fork and returns its exit code. Stop is process-wide, so each case needs its own process.
int ExitCodeOf(const std::function<void()>& child) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    child();
    ::_exit(99);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(Stop, FirstSignalRequestsADrainAndWakesTheWaiter) {
  EXPECT_EQ(ExitCodeOf([] {
              Stop::InstallSignalHandlers();
              if (Stop::Process().requested()) ::_exit(1);
              ::raise(SIGTERM);
              ::_exit(Stop::Process().WaitFor(std::chrono::minutes(5)) && Stop::Process().requested() ? 0 : 2);
            }),
            0);
}

TEST(Stop, ASecondSigintEndsTheProcessAtOnce) {
  for (const bool terminated_before : {false, true}) {
    EXPECT_EQ(ExitCodeOf([terminated_before] {
                Stop::InstallSignalHandlers();
                if (terminated_before) ::raise(SIGTERM);
                ::raise(SIGINT);
                ::raise(SIGINT);
              }),
              kExitInterrupted);
  }
}

// A role gets SIGTERM twice when its whole process tree is terminated: from outside, and from `datacom train`.
TEST(Stop, RepeatedSigtermIsOneRequest) {
  EXPECT_EQ(ExitCodeOf([] {
              Stop::InstallSignalHandlers();
              ::raise(SIGINT);
              for (int i = 0; i < 3; ++i) ::raise(SIGTERM);
              ::_exit(Stop::Process().requested() ? 0 : 2);
            }),
            0);
}

TEST(StallTimer, StallsOnceTheCountHasNotChangedForTheLimit) {
  ManualClock clock;
  StallTimer timer(&clock, std::chrono::minutes(10));
  const auto after = [&](int minutes, uint64_t count) {
    clock.Advance(std::chrono::minutes(minutes));
    return timer.Stalled(count);
  };
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(after(1, 0)) << i;
  EXPECT_FALSE(after(1, 1)) << "a step";
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(after(1, 1)) << i;
  EXPECT_TRUE(after(1, 1));
  EXPECT_TRUE(after(1, 1));
  EXPECT_FALSE(after(1, 2)) << "it moves again";
}

TEST(StallTimer, ACallerThatWasSuspendedBlamesNobody) {
  ManualClock clock;
  StallTimer timer(&clock, std::chrono::minutes(10));
  for (int i = 0; i < 3; ++i) {
    clock.Advance(std::chrono::hours(8));
    EXPECT_FALSE(timer.Stalled(0)) << "7.5 minutes count";
  }
  clock.Advance(std::chrono::hours(8));
  EXPECT_TRUE(timer.Stalled(0));
}

TEST(Watchdog, EndsAProcessWhoseLoopHangs) {
  EXPECT_EQ(ExitCodeOf([] {
              const Watchdog watchdog("the loop", std::chrono::milliseconds(20));
              watchdog.Mark();
              ::pause();
            }),
            kExitFailure);
}

TEST(Watchdog, NamesWhatHangsAndDoesNotWatchWhatHasNotBegun) {
  Mutex mutex;
  CondVar changed;
  std::string reason;
  const auto note = [&](const std::string& given) {
    MutexLock lock(&mutex);
    reason += given;
    changed.NotifyAll();
  };
  const Watchdog not_begun("the evaluator's loop", Minutes(0.0001), note);
  const Watchdog watchdog("the actor's loop", Minutes(0.001), note);
  watchdog.Mark();
  MutexLock lock(&mutex);
  while (reason.empty()) changed.Wait(&mutex);
  EXPECT_EQ(reason, "the actor's loop has made no step for 0.001 minutes: it hangs");
}

TEST(Stop, CanBeRequestedWithoutASignal) {
  EXPECT_EQ(ExitCodeOf([] {
              Stop::Process().Request();
              ::_exit(Stop::Process().WaitFor(std::chrono::minutes(5)) ? 0 : 2);
            }),
            0);
}

// A wait that is not ended lasts until ctest's time limit.
TEST(Changes, AReportBeforeTheWaitIsNotLost) {
  Changes changes;
  changes.Report();
  changes.Wait(std::chrono::hours(1));
  changes.Wait(std::chrono::nanoseconds(0));  // the report was already seen, so only the timeout ends this wait
}

TEST(Changes, AReportFromAnyThreadEndsTheWait) {
  Changes changes;
  for (int source = 0; source < 2; ++source) {
    std::thread reporter([&changes] { changes.Report(); });
    changes.Wait(std::chrono::hours(1));
    reporter.join();
  }
}

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

// A machine with control groups, as files below a folder.
class FakeGroups {
 public:
  FakeGroups() {
    std::string name = (std::filesystem::temp_directory_path() / "datacom_groups_XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~FakeGroups() { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) const {
    const std::string file = root_ + path;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file) << text;
  }
  int Usable() const { return UsableProcessors(root_); }

 private:
  std::string root_;
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

TEST(Version, TellsAnotherSimulatorFromItsOwnAndFromNone) {
  EXPECT_FALSE(HasOtherSimulator(BuildName()));
  EXPECT_TRUE(HasOtherSimulator("0.1.0 abc MuJoCo 0.9.9"));
  EXPECT_FALSE(HasOtherSimulator("0.1.0 abc"));
}

TEST(Version, HasARevision) {
  EXPECT_FALSE(Version().empty());
  EXPECT_FALSE(Revision().empty());
  std::string message;
  EXPECT_TRUE(CheckProcessor(&message)) << message;
}

}  // namespace
}  // namespace datacom
