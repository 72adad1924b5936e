#include "common/base/stall.h"

#include <unistd.h>

#include <limits>
#include <string>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "gtest/gtest.h"
#include "tests/testing/exit_code.h"
#include "tests/testing/manual_clock.h"

namespace datacom {
namespace {

using testing::ExitCodeOf;

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

TEST(StallTimer, ALimitThatNoDurationCanHoldIsNeverReached) {
  EXPECT_EQ(Minutes(0.5), std::chrono::seconds(30));
  EXPECT_EQ(Minutes(1e8), std::chrono::minutes(100'000'000));
  for (const double minutes : {2e8, 1e12, 1e300, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(Minutes(minutes), Minutes(1e8)) << minutes;
    ManualClock clock;
    StallTimer timer(&clock, Minutes(minutes));
    clock.Advance(std::chrono::hours(24 * 365));
    EXPECT_FALSE(timer.Stalled(0)) << minutes;
  }
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

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
