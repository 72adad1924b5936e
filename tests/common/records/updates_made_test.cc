#include "common/records/updates_made.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;

class UpdatesMadeTest : public ::testing::Test {
 protected:
  // A start that continues `resumed` updates and comes to `reached`. Returns what it knows to be repeated.
  uint64_t Start(uint64_t resumed, uint64_t reached) const {
    const auto writer = UpdatesMadeWriter::Open(path_, resumed);
    EXPECT_THAT(writer, IsOk());
    for (uint64_t update = resumed + 1; update <= reached; ++update) (*writer)->Reach(update);
    return (*writer)->repeated();
  }

  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/updates";
};

TEST_F(UpdatesMadeTest, WhatEarlierStartsMadeBeyondTheirCheckpointsAddsUp) {
  EXPECT_EQ(Start(0, 130), 0u);
  EXPECT_EQ(Start(100, 110), 30u) << "130 was reached, 100 kept";
  EXPECT_EQ(Start(100, 100), 40u) << "110 was reached, 100 kept";
  EXPECT_EQ(Start(100, 250), 40u) << "the start before made nothing";
  EXPECT_EQ(Start(250, 260), 40u) << "a checkpoint held everything";
  const auto made = ReadUpdatesMade(path_);
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->reached, 260u);
  EXPECT_EQ(made->repeated, 40u);
  EXPECT_EQ(*ReadFile(path_), "reached 00000000000000000260\nrepeated 00000000000000000040\n");
}

TEST_F(UpdatesMadeTest, AFileThatIsBehindTheCheckpointCountsNothing) {  // as after lost power
  Start(0, 50);
  EXPECT_EQ(Start(100, 100), 0u);
  EXPECT_EQ(Start(100, 100), 0u);
}

TEST_F(UpdatesMadeTest, AReaderSeesEachUpdateAtOnce) {
  const auto writer = UpdatesMadeWriter::Open(path_, 0);
  ASSERT_THAT(writer, IsOk());
  for (const uint64_t update : {uint64_t{9}, uint64_t{10}, uint64_t{1} << 40}) {
    (*writer)->Reach(update);
    EXPECT_EQ(ReadUpdatesMade(path_)->reached, update);
  }
}

TEST_F(UpdatesMadeTest, ADamagedFileIsNamedAndBegunAgain) {
  EXPECT_TRUE(absl::IsNotFound(ReadUpdatesMade(path_).status()));
  Start(0, 7);
  const std::string sound = *ReadFile(path_);
  const std::vector<std::string> damages = {"",
                                            sound.substr(0, sound.size() - 1),
                                            sound + "\n",
                                            std::string(sound.size(), '\0'),
                                            "reached 0000000000000000x007\nrepeated 00000000000000000000\n",
                                            "reached 99999999999999999999\nrepeated 00000000000000000000\n"};
  for (const std::string& damaged : damages) {
    std::ofstream(path_, std::ios::trunc) << damaged;
    const absl::Status status = ReadUpdatesMade(path_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(path_));
    EXPECT_EQ(Start(5, 6), 0u);
    EXPECT_EQ(ReadUpdatesMade(path_)->reached, 6u);
  }
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(UpdatesMadeWriter::Open(path_, 0).ok());
}

TEST(RepeatedShare, IsOfAllUpdatesThatWereMade) {
  EXPECT_EQ(RepeatedShare(0, 0), 0);
  EXPECT_EQ(RepeatedShare(25, 75), 0.25);
  EXPECT_EQ(RepeatedShare(3, 0), 1);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
