#include "common/base/changes.h"

#include <thread>

#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace datacom {
namespace {

TEST(Changes, AReportBeforeTheWaitIsNotLost) {
  Changes changes;
  changes.Report();
  EXPECT_TRUE(changes.Wait(testing::kPatience));
  EXPECT_FALSE(changes.Wait(std::chrono::nanoseconds(0))) << "the report was already seen";
}

TEST(Changes, AReportFromAnyThreadEndsTheWait) {
  Changes changes;
  for (int source = 0; source < 2; ++source) {
    std::thread reporter([&changes] { changes.Report(); });
    EXPECT_TRUE(changes.Wait(testing::kPatience));
    reporter.join();
  }
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
