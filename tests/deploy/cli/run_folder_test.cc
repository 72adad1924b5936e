#include "deploy/cli/run_folder.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/config/experiment.h"
#include "common/nn/snapshot.h"
#include "common/records/checkpoint.h"
#include "deploy/cli/process.h"
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

TEST_F(RunFolderTest, TheDefaultNameHasTheNumberAfterTheLastUsedOrForAResumeThatOne) {
  EXPECT_EQ(*DefaultRunFolder("cartpole/datacom", false), "runs/cartpole-datacom-1");
  EXPECT_FALSE(DefaultRunFolder("cartpole/datacom", true).ok());
  fs::create_directories("runs/cartpole-datacom-1");
  fs::create_directories("runs/cartpole-datacom-2");
  EXPECT_EQ(*DefaultRunFolder("cartpole/datacom", false), "runs/cartpole-datacom-3");
  EXPECT_EQ(*DefaultRunFolder("cartpole/datacom", true), "runs/cartpole-datacom-2");
  for (const char* name : {"10", "11-1", "012", "x", "99999999999999999999", "-12"}) {
    fs::create_directories(std::string("runs/cartpole-datacom-") + name);
  }
  fs::remove("runs/cartpole-datacom-2");
  EXPECT_EQ(*DefaultRunFolder("cartpole/datacom", false), "runs/cartpole-datacom-11") << "3 to 9 are missing";
  EXPECT_EQ(*DefaultRunFolder("cartpole/datacom", true), "runs/cartpole-datacom-10");
}

TEST_F(RunFolderTest, AResumedRunKeepsItsId) {
  const auto first = PrepareRunFolder("r", "name: \"x\"");
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(*PrepareRunFolder("r", "name: \"x\""), *first);
  EXPECT_NE(*PrepareRunFolder("s", "name: \"x\""), *first);
  EXPECT_TRUE(fs::exists("r/logs"));
  EXPECT_THAT(LoadExperiment(ExperimentFile("r"), ""), IsOk());
}

TEST_F(RunFolderTest, ARunIsNamedAfterItsFolderHoweverThatIsTyped) {
  EXPECT_EQ(PrepareRunFolder("five/", "").value().substr(0, 5), "five-");
  fs::current_path("five");
  EXPECT_EQ(FolderName("sub/.."), "five");
  EXPECT_EQ(FolderName("."), "five");
  EXPECT_EQ(FolderName("/"), "");
}

TEST_F(RunFolderTest, ALongNameIsCutInTheRunsId) {
  const absl::StatusOr<std::string> id = PrepareRunFolder(std::string(237, 'a') + "\xc3\xa4z", "");
  ASSERT_THAT(id, IsOk());
  EXPECT_EQ(id->size(), 254u) << "a ring takes 255 bytes, and the code point stays whole";
  EXPECT_EQ(id->substr(0, 238), std::string(237, 'a') + "-");
}

TEST_F(RunFolderTest, ALogIsNotWrittenThroughALink) {
  std::ofstream("precious") << "text";
  fs::create_symlink("precious", "role.log");
  Process role;
  EXPECT_EQ(role.Start({"/bin/true"}, "role.log").message(),
            "open role.log, which may not be a link: Too many levels of symbolic links");
  EXPECT_FALSE(role.running());
}

TEST_F(RunFolderTest, ACommandToTypeQuotesItsFolder) {
  fs::create_directories("my run");
  EXPECT_THAT(std::string(CheckRunFolder("my run", true).message()), HasSubstr("EXPERIMENT --run-dir 'my run'"));
  std::ofstream("my run/notes") << "x";
  EXPECT_THAT(std::string(CheckRunFolder("my run", false).message()), HasSubstr("e.g. --run-dir 'my run/run'"));
}

TEST_F(RunFolderTest, APipeInThePlaceOfALogIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo("role.log", 0600), 0);
  Process role;
  EXPECT_EQ(role.Start({"/bin/true"}, "role.log").message(), "open role.log: No such device or address");
  EXPECT_FALSE(role.running());
}

TEST_F(RunFolderTest, ARunIsNotWrittenThroughALinkToTheFolderOfAnother) {
  fs::create_directories("mine/policies");
  for (const char* folder : {"r", "new"}) {
    fs::create_directories(folder);
    fs::create_directory_symlink("../mine/policies", std::string(folder) + "/policies");
  }
  std::ofstream("r/experiment.textproto") << "name: \"x\"";
  for (const absl::Status& status : {CheckRunFolder("r", true), CheckRunFolder("new", false)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/policies is a link"));
  }
}

TEST_F(RunFolderTest, AResumeOfACopyWithHardLinksChangesNoOtherCopy) {
  for (const char* folder : {"r/tensorboard/member_0", "r/replay", "r/ledger", "other"}) fs::create_directories(folder);
  const std::vector<std::string> files = {"r/progress.csv", "r/replay/member_0.rows", "r/tensorboard/member_0/events"};
  for (const std::string& file : files) {
    std::ofstream(file) << "common";
    fs::create_hard_link(file, "other/" + fs::path(file).filename().string());
  }
  fs::create_symlink("../../other/progress.csv", "r/ledger/link");
  ASSERT_THAT(UnshareFiles("r"), IsOk());
  EXPECT_TRUE(fs::is_symlink("r/ledger/link"));
  for (const std::string& file : files) {
    EXPECT_EQ(ReadFile(file).value(), "common");
    std::ofstream(file, std::ios::app) << " and own";
    EXPECT_EQ(ReadFile("other/" + fs::path(file).filename().string()).value(), "common") << file;
  }
  EXPECT_EQ(ListFolder("r/replay").value(), std::vector<std::string>{"member_0.rows"});
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
  std::ofstream("r/progress.csv") << "member,env_steps,status\n0,500,\x1b[2J\n";  // of a stranger
  EXPECT_THAT(*FinalTable("r"), HasSubstr("\\x1b[2J"));
}

TEST_F(RunFolderTest, APipeInThePlaceOfTheLayoutIsNotWaitedFor) {
  fs::create_directories("r/cluster");
  ASSERT_EQ(::mkfifo("r/cluster/layout", 0600), 0);
  EXPECT_FALSE(ReadLayout("r").has_value());
}

TEST_F(RunFolderTest, AnEndedRunTellsWhatItRepeatedAndWhatAResumeWillRepeat) {
  EXPECT_EQ(RepeatedWorkOf("r"), "");
  fs::create_directories("r/checkpoints");
  std::ofstream("r/checkpoints/incarnation") << "3\n";
  std::ofstream("r/checkpoints/updates") << "reached 00000000000000003250\nrepeated 00000000000000000300\n";
  EXPECT_EQ(RepeatedWorkOf("r"), "") << "no checkpoint";
  Checkpoint checkpoint;
  checkpoint.learner.set_update(2000);
  checkpoint.learner.set_pretrain_update(700);
  ASSERT_THAT(CheckpointStore("r/checkpoints").Save(checkpoint), IsOk());
  EXPECT_EQ(RepeatedWorkOf("r"),
            "work repeated: 300 updates (10.0 %) in 2 restarts of the learner\n"
            "a resume repeats 550 updates, which no checkpoint holds\n");
  std::ofstream("r/checkpoints/updates") << "reached 00000000000000002700\nrepeated 00000000000000000300\n";
  EXPECT_EQ(RepeatedWorkOf("r"), "work repeated: 300 updates (10.0 %) in 2 restarts of the learner\n");
  fs::remove("r/checkpoints/updates");
  EXPECT_EQ(RepeatedWorkOf("r"), "") << "a run of an older build";
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
  EXPECT_TRUE(HoldsNoRun("r"));
  for (const char* file : {"r/replay/member_0.rows", "r/cluster/layout", "r/mine.txt"}) {
    std::ofstream(file) << "x";
    EXPECT_FALSE(HoldsNoRun("r")) << file;
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
  std::ofstream("r/run_id") << "r-1\n";
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
  for (const std::string lost : {"replay/member_1.rows", "episodes.csv", "progress.csv", "run_id"}) {
    fs::rename("r/" + lost, "r/kept");
    const absl::Status status = CheckStateKept("r", 2);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("r has lost " + lost + ", which its checkpoints need"));
    fs::rename("r/kept", "r/" + lost);
  }
}

TEST_F(RunFolderTest, RecordsAreThoseThatTheNewestCheckpointNames) {
  const v1::Experiment experiment = ResolveExperiment(v1::Experiment());
  EXPECT_EQ(CheckRecords("r", experiment).value(), 0u) << "a run without a checkpoint";
  fs::create_directories("r/ledger");
  fs::create_directories("r/checkpoints");
  std::ofstream("r/run_id") << "r-1\n";
  Checkpoint checkpoint;
  checkpoint.learner.set_update(5);
  checkpoint.learner.set_run_id("r-1");
  checkpoint.learner.set_experiment(PrintExperiment(experiment));
  checkpoint.learner.set_replay_start(0xa1);
  checkpoint.learner.add_totals();
  checkpoint.algorithm["weights"] = "1234";
  ASSERT_THAT(CheckpointStore("r/checkpoints").Save(checkpoint), IsOk());
  EXPECT_THAT(std::string(CheckRecords("r", experiment).status().message()),
              HasSubstr("checkpoints/5: it names no record files"));
  v1::FileEnd* const file = checkpoint.learner.add_files();
  file->set_path("ledger/violations.csv");
  file->set_bytes(9);
  file->set_sha256("15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225");  // of "123456789"
  ASSERT_THAT(CheckpointStore("r/checkpoints").Save(checkpoint), IsOk());
  const auto refusal = [&experiment](const std::string& content) {
    std::ofstream("r/ledger/violations.csv") << content;
    const absl::Status status = CheckRecords("r", experiment).status();
    EXPECT_EQ(absl::IsDataLoss(status), !status.ok()) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(refusal("123456789"), "");
  EXPECT_EQ(refusal("123456789, written after the checkpoint"), "");
  EXPECT_EQ(CheckRecords("r", experiment).value(), 0xa1u);
  EXPECT_THAT(refusal("123456780"), HasSubstr("--resume: r/ledger/violations.csv: its first 9 bytes are not those"));
  EXPECT_THAT(refusal("12345678"), HasSubstr("r/ledger/violations.csv has 8 bytes, but 9 were recorded"));
  std::ofstream("r/ledger/violations.csv") << "123456789";
  std::ofstream("r/checkpoints/incarnation") << "1x\n";
  EXPECT_THAT(std::string(CheckRecords("r", experiment).status().message()),
              HasSubstr("incarnation: not the number of a start"));
  std::ofstream("r/checkpoints/incarnation") << "1\n";
  EXPECT_THAT(CheckRecords("r", experiment).status(), IsOk());
  v1::Experiment other = experiment;
  other.mutable_learner()->set_tau(0.5);
  EXPECT_THAT(std::string(CheckRecords("r", other).status().message()),
              HasSubstr("the experiment differs from the one of the checkpoint at update 5"));
  std::ofstream("r/run_id") << "r-2\n";
  EXPECT_THAT(
      std::string(CheckRecords("r", experiment).status().message()),
      HasSubstr("--resume: r/checkpoints/5: the checkpoint at update 5 belongs to run \"r-1\", not to run \"r-2\""));
  std::ofstream("r/run_id") << "r-1\n";
  std::ofstream("r/checkpoints/5/algorithm.state") << "x";
  EXPECT_THAT(std::string(CheckRecords("r", experiment).status().message()), HasSubstr("no checkpoint is sound"));
  ASSERT_THAT(CheckpointStore("r/checkpoints").Save(checkpoint), IsOk());
  fs::remove("r/ledger/violations.csv");
  EXPECT_THAT(std::string(CheckRecords("r", experiment).status().message()),
              HasSubstr("r/ledger/violations.csv is missing"));
}

// A checkpoint of run r-1 that names `path`, whose content is "123456789".
Checkpoint CheckpointThatNames(const std::string& path, const v1::Experiment& experiment) {
  fs::create_directories(fs::path("r") / fs::path(path).parent_path());
  std::ofstream("r/run_id") << "r-1\n";
  std::ofstream("r/" + path) << "123456789";
  Checkpoint checkpoint;
  checkpoint.learner.set_run_id("r-1");
  checkpoint.learner.set_experiment(PrintExperiment(experiment));
  checkpoint.learner.add_totals();
  checkpoint.algorithm["weights"] = "1234";
  v1::FileEnd* const file = checkpoint.learner.add_files();
  file->set_path(path);
  file->set_bytes(9);
  file->set_sha256("15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225");  // of "123456789"
  return checkpoint;
}

// An epoch of one member that waits for its evaluation.
void AddPending(uint32_t epoch, Checkpoint* checkpoint) {
  v1::EpochRecord* const pending = checkpoint->learner.add_pending();
  pending->set_epoch(epoch);
  pending->add_members();
}

TEST_F(RunFolderTest, NothingFollowsInAFileOfPolicies) {
  const v1::Experiment experiment = ResolveExperiment(v1::Experiment());
  ASSERT_THAT(CheckpointStore("r/checkpoints").Save(CheckpointThatNames("policies/epoch_0003.snapshot", experiment)),
              IsOk());
  EXPECT_THAT(CheckRecords("r", experiment).status(), IsOk());
  std::ofstream("r/policies/epoch_0003.snapshot") << "1234567890";
  EXPECT_THAT(std::string(CheckRecords("r", experiment).status().message()),
              HasSubstr("policies/epoch_0003.snapshot has 10 bytes, but 9 were recorded"));
}

TEST_F(RunFolderTest, PoliciesOfPendingEvaluationsAreOfTheRun) {
  const v1::Experiment experiment = ResolveExperiment(v1::Experiment());
  Checkpoint checkpoint = CheckpointThatNames("episodes.csv", experiment);
  AddPending(3, &checkpoint);  // cut short, so that the checkpoint has no sum of its policies
  ASSERT_THAT(CheckpointStore("r/checkpoints").Save(checkpoint), IsOk());
  EXPECT_THAT(std::string(CheckRecords("r", experiment).status().message()), HasSubstr("policies/epoch_0003.snapshot"));
  fs::create_directories("r/policies");
  Snapshot policy;
  policy.run_id = "another";
  ASSERT_THAT(WriteSnapshotFile("r/policies/epoch_0003.snapshot", {policy}), IsOk());
  EXPECT_THAT(std::string(CheckRecords("r", experiment).status().message()),
              HasSubstr("policies/epoch_0003.snapshot: policy of member 0: of run \"another\", not \"r-1\""));
}

TEST_F(RunFolderTest, PoliciesOfACutEpochThatALongerRunWritesAgainAreNotChecked) {
  v1::Experiment experiment = ResolveExperiment(v1::Experiment());
  experiment.mutable_run()->set_steps_per_epoch(1000);
  Checkpoint checkpoint = CheckpointThatNames("episodes.csv", experiment);
  AddPending(3, &checkpoint);
  checkpoint.learner.set_next_epoch(4);
  checkpoint.learner.set_last_epoch_steps(2400);
  ASSERT_THAT(CheckpointStore("r/checkpoints").Save(checkpoint), IsOk());
  experiment.mutable_run()->set_env_steps(2400);
  EXPECT_THAT(std::string(CheckRecords("r", experiment).status().message()), HasSubstr("policies/epoch_0003.snapshot"));
  experiment.mutable_run()->set_env_steps(2500);
  EXPECT_THAT(CheckRecords("r", experiment), IsOk());
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
