#include "deploy/cli/run_folder.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>

#include "common/config/experiment.h"
#include "deploy/cli/summary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/patience.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::cli {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class RunFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    fs::current_path(folder_.path());
  }
  void TearDown() override { fs::current_path(before_); }

  const datacom::testing::TemporaryFolder folder_;
  fs::path before_;
};

TEST_F(RunFolderTest, TheDefaultNameHasTheFirstFreeNumberOrForAResumeTheLastUsed) {
  EXPECT_EQ(*DefaultRunFolder("cartpole/datacom", false), "runs/cartpole-datacom-1");
  EXPECT_FALSE(DefaultRunFolder("cartpole/datacom", true).ok());
  fs::create_directories("runs/cartpole-datacom-1");
  fs::create_directories("runs/cartpole-datacom-2");
  EXPECT_EQ(*DefaultRunFolder("cartpole/datacom", false), "runs/cartpole-datacom-3");
  EXPECT_EQ(*DefaultRunFolder("cartpole/datacom", true), "runs/cartpole-datacom-2");
}

TEST_F(RunFolderTest, AResumedRunKeepsItsId) {
  const auto first = PrepareRunFolder("r", "name: \"x\"");
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(*PrepareRunFolder("r", "name: \"x\""), *first);
  EXPECT_NE(*PrepareRunFolder("s", "name: \"x\""), *first);
  EXPECT_TRUE(fs::exists("r/logs"));
  EXPECT_THAT(LoadExperiment(ExperimentFile("r"), ""), IsOk());
}

TEST_F(RunFolderTest, AResumeFindsTheRunsNumberOfActorsAndEnvironments) {
  EXPECT_FALSE(ReadLayout("r").has_value());
  ASSERT_THAT(PrepareRunFolder("r", ""), IsOk());
  ASSERT_THAT(WriteLayout("r", {2, 32}), IsOk());
  const auto layout = ReadLayout("r");
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->actors, 2);
  EXPECT_EQ(layout->environments, 32);
  std::ofstream("r/cluster/layout") << "actors 2\nenvironments many\n";
  EXPECT_FALSE(ReadLayout("r").has_value());
}

TEST_F(RunFolderTest, OnlyOneTrainOwnsAFolder) {
  auto lock = RunLock::Take("r", std::chrono::milliseconds(0));
  ASSERT_THAT(lock, IsOk());
  const auto second = RunLock::Take("r", std::chrono::milliseconds(0));
  EXPECT_TRUE(absl::IsInvalidArgument(second.status())) << second.status();
  lock->reset();
  EXPECT_THAT(RunLock::Take("r", std::chrono::milliseconds(0)), IsOk());
}

TEST_F(RunFolderTest, ALockThatIsReleasedSoonIsWaitedFor) {
  auto held = RunLock::Take("r", std::chrono::milliseconds(0));
  ASSERT_THAT(held, IsOk());
  auto waiting = std::async(std::launch::async, [] { return RunLock::Take("r", testing::kPatience).status(); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  held->reset();
  EXPECT_EQ(waiting.get(), absl::OkStatus());
}

TEST_F(RunFolderTest, AnAddressIsEmptyUntilARoleReportsIt) {
  fs::create_directories("r/cluster");
  EXPECT_EQ(ReadAddress("r", "replay", "address"), "");
  std::ofstream(AddressFile("r", "replay", "address")) << "127.0.0.1:5\n";
  EXPECT_EQ(ReadAddress("r", "replay", "address"), "127.0.0.1:5");
}

TEST_F(RunFolderTest, TheFinalTableHasTheNewestRowOfEachMemberAndTheMean) {
  fs::create_directories("r");
  std::ofstream("r/progress.csv")
      << "member,seed,env_steps,eval_return,status\n0,3,0,1,ok\n1,4,0,1,ok\n0,3,500,10,ok\n1,4,500,30,diverged\n";
  const auto table = FinalTable("r");
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT(*table, HasSubstr("10.00"));
  EXPECT_THAT(*table, HasSubstr("diverged"));
  EXPECT_THAT(*table, HasSubstr("20.00"));
  EXPECT_THAT(*table, ::testing::Not(HasSubstr(" 1.00")));
  EXPECT_THAT(CheckStepsLeft("r", 500), IsOk());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckStepsLeft("r", 499)));
}

TEST_F(RunFolderTest, DamagedProgressIsAnErrorOfTheFinalTableButNotOfAResume) {
  fs::create_directories("r");
  EXPECT_THAT(CheckStepsLeft("r", 500), IsOk());
  std::ofstream("r/progress.csv") << "member,env_st";  // killed while writing the header
  EXPECT_THAT(CheckStepsLeft("r", 500), IsOk());
  std::ofstream("r/progress.csv") << "member,env_steps\n-7,0\n";
  EXPECT_THAT(CheckStepsLeft("r", 500), IsOk()) << "the learner cuts it";
  const absl::Status status = FinalTable("r").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("r/progress.csv line 2, column member: \"-7\""));
}

TEST_F(RunFolderTest, AFolderLeftBeforeItsExperimentWasWrittenIsStillNew) {
  for (const char* folder : {"r/cluster", "r/logs", "r/replay", "r/checkpoints", "r/policies"}) {
    EXPECT_THAT(CheckRunFolder("r", false), IsOk()) << folder;
    fs::create_directories(folder);
  }
  for (const char* file : {"r/cluster/train.lock", "r/cluster/roles.lock", "r/run_id.tmp"}) std::ofstream{file};
  std::ofstream("r/run_id") << "r-1\n";
  EXPECT_THAT(CheckRunFolder("r", false), IsOk());
  for (const char* file : {"r/replay/member_0.rows", "r/cluster/layout", "r/mine.txt"}) {
    std::ofstream(file) << "x";
    const absl::Status status = CheckRunFolder("r", false);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << file;
    EXPECT_THAT(std::string(status.message()), HasSubstr("r is not empty")) << file;
    fs::remove(file);
  }
}

// The files of a run in "r" just before its first update: two members and the first checkpoint.
void LeaveBegunRun() {
  fs::create_directories("r/replay");
  fs::create_directories("r/checkpoints/0");
  for (const char* file : {"r/replay/member_0.rows", "r/replay/member_1.rows"}) std::ofstream(file) << "rows";
  std::ofstream("r/progress.csv") << "member,env_steps,updates\n";
  std::ofstream("r/episodes.csv") << "member,env_steps\n";
}

TEST_F(RunFolderTest, ARunKilledBeforeItsFirstCheckpointCanBeResumed) {
  EXPECT_THAT(CheckStateKept("r", 1), IsOk());
  LeaveBegunRun();
  fs::remove_all("r/checkpoints/0");
  fs::create_directories("r/checkpoints/0.tmp");
  std::ofstream("r/progress.csv") << "member,env_steps,updates\n0,0,0\n1,0,0\n";
  EXPECT_THAT(CheckStateKept("r", 2), IsOk());
}

TEST_F(RunFolderTest, ARunWithACheckpointNeedsItsRingsAndRecords) {
  LeaveBegunRun();
  EXPECT_THAT(CheckStateKept("r", 2), IsOk());
  fs::rename("r/checkpoints/0", "r/checkpoints/0.old");  // killed between the two renames that replace a checkpoint
  EXPECT_THAT(CheckStateKept("r", 2), IsOk());
  for (const std::string lost : {"replay/member_1.rows", "episodes.csv", "progress.csv"}) {
    fs::rename("r/" + lost, "r/kept");
    const absl::Status status = CheckStateKept("r", 2);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("r has lost " + lost + ", which its checkpoints need"));
    fs::rename("r/kept", "r/" + lost);
  }
}

TEST_F(RunFolderTest, ARunWhoseRecordsShowUpdatesNeedsACheckpoint) {
  for (const std::string file : {"progress.csv", "episodes.csv"}) {
    LeaveBegunRun();
    fs::rename("r/checkpoints/0", "r/checkpoints/0.damaged");
    EXPECT_THAT(CheckStateKept("r", 2), IsOk());
    std::ofstream("r/" + file) << "member,env_steps,updates\n1,7,1\n";
    const absl::Status status = CheckStateKept("r", 2);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("lost every checkpoint in checkpoints/"));
    fs::remove_all("r");
  }
}

}  // namespace
}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
