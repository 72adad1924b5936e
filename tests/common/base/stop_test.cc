#include "common/base/stop.h"

#include <signal.h>
#include <unistd.h>

#include "common/base/status.h"
#include "gtest/gtest.h"
#include "tests/testing/exit_code.h"
#include "tests/testing/patience.h"

namespace datacom {
namespace {

using testing::ExitCodeOf;

TEST(Stop, FirstSignalRequestsADrainAndWakesTheWaiter) {
  EXPECT_EQ(ExitCodeOf([] {
              Stop::InstallSignalHandlers();
              if (Stop::Process().requested()) ::_exit(1);
              ::raise(SIGTERM);
              ::_exit(Stop::Process().WaitFor(testing::kPatience) && Stop::Process().requested() ? 0 : 2);
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

TEST(Stop, CanBeRequestedWithoutASignal) {
  EXPECT_EQ(ExitCodeOf([] {
              Stop::Process().Request();
              ::_exit(Stop::Process().WaitFor(testing::kPatience) ? 0 : 2);
            }),
            0);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
