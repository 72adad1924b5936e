#include "common/base/version.h"

#include <string>

#include "gtest/gtest.h"

namespace datacom {
namespace {

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
// SPDX-License-Identifier: Apache-2.0
