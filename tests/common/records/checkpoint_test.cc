#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/config/experiment.h"
#include "common/config/sha256.h"
#include "common/records/checkpoint.h"
#include "datacom/v1/experiment.pb.h"
#include "tests/testing/changed_files.h"
#include "tests/testing/exit_code.h"
#include "tests/testing/framed_files.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/small_disk.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

namespace fs = std::filesystem;
using ::datacom::testing::IsOk;
using ::datacom::testing::WriteInPlace;

class CheckpointStoreTest : public ::testing::Test {
 protected:
  static Checkpoint At(uint64_t update) {
    Checkpoint checkpoint;
    checkpoint.learner.set_update(update);
    checkpoint.learner.set_next_epoch(2);
    checkpoint.learner.set_experiment("task: \"cartpole\"");
    checkpoint.algorithm["actor"] = std::string(100, static_cast<char>(update));
    checkpoint.algorithm["delta"] = std::string("\0\1\2", 3);
    return checkpoint;
  }
  void Save(uint64_t update) {
    const absl::Status status = store_->Save(At(update));
    ASSERT_THAT(status, IsOk());
  }
  const testing::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  std::unique_ptr<CheckpointStore> store_ = std::make_unique<CheckpointStore>(folder_);
};

TEST_F(CheckpointStoreTest, AFolderWhoseRunWasMovedIsNotMadeAgain) {
  const CheckpointStore store(folder_ + "/run/checkpoints");
  EXPECT_TRUE(absl::IsNotFound(store.Save(At(5))));
  EXPECT_FALSE(fs::exists(folder_ + "/run"));
  fs::create_directory(folder_ + "/run");
  EXPECT_THAT(store.Save(At(5)), IsOk());
  EXPECT_THAT(store.Load(5), IsOk());
}

TEST_F(CheckpointStoreTest, AFolderThatIsNoUpdateIsNoCheckpoint) {
  Save(7);
  for (const char* other : {"007", "7 ", "+7", "7\n", "7.bak"}) fs::create_directory(folder_ + "/" + other);
  EXPECT_EQ(store_->List(), std::vector<uint64_t>{7});
  EXPECT_EQ(store_->Reached(), 7u);
  fs::create_directory(folder_ + "/9.old");
  fs::create_directory(folder_ + "/11.damaged");
  EXPECT_EQ(store_->Reached(), 9u);
}

TEST_F(CheckpointStoreTest, OnAFullDiskTheOldOneStaysWhatIsNeededIsToldAndTheNextOneIsWrittenOnceThereIsRoom) {
  datacom::testing::SmallDisk disk(256 << 10);
  if (!disk.mounted()) GTEST_SKIP() << disk.why();
  store_ = std::make_unique<CheckpointStore>(disk.path());
  Save(7);
  const absl::Status too_large = WriteFileAtomically(disk.path() + "/file", std::string(1 << 20, 'a'));
  EXPECT_THAT(std::string(too_large.message()),
              ::testing::ContainsRegex("/file.tmp: 1048576 bytes are needed, [1-9][0-9]+ are free"));
  disk.Fill();
  Checkpoint large = At(8);
  large.algorithm["actor"] = std::string(100000, 'a');
  const absl::Status refused = store_->Save(large);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()),
              ::testing::ContainsRegex("no disk space for " + disk.path() + "/8.tmp/.*: [0-9]+ bytes are needed"));
  EXPECT_FALSE(fs::exists(disk.path() + "/8.tmp")) << "half a checkpoint takes no room";
  std::vector<std::string> notes;
  const auto kept = store_->LoadNewest(&notes);
  ASSERT_THAT(kept, IsOk());
  EXPECT_EQ(kept->learner.update(), 7u);
  disk.Free();
  EXPECT_THAT(store_->Save(large), IsOk());
  EXPECT_EQ(store_->LoadNewest(&notes)->learner.update(), 8u);
}

TEST_F(CheckpointStoreTest, WhatWasSavedIsLoaded) {
  Save(7);
  std::vector<std::string> notes;
  const auto loaded = store_->LoadNewest(&notes);
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->learner.update(), 7u);
  EXPECT_EQ(loaded->learner.experiment(), "task: \"cartpole\"");
  EXPECT_EQ(loaded->algorithm, At(7).algorithm);
  EXPECT_TRUE(notes.empty());
}

TEST_F(CheckpointStoreTest, TheTwoNewestAreKept) {
  for (const uint64_t update : {5, 40, 300}) Save(update);
  EXPECT_EQ(store_->List(), (std::vector<uint64_t>{300, 40}));
}

TEST_F(CheckpointStoreTest, SavingTheSameUpdateAgainReplacesIt) {
  Save(5);
  Checkpoint changed = At(5);
  changed.learner.set_next_epoch(3);
  ASSERT_THAT(store_->Save(changed), IsOk());
  std::vector<std::string> notes;
  EXPECT_EQ(store_->LoadNewest(&notes)->learner.next_epoch(), 3u);
}

TEST_F(CheckpointStoreTest, NothingSavedIsNotFound) {
  std::vector<std::string> notes;
  EXPECT_TRUE(absl::IsNotFound(store_->LoadNewest(&notes).status()));
}

TEST_F(CheckpointStoreTest, ADamagedNewestFallsBackToTheOlderAndSaysSo) {
  Save(10);
  Save(20);
  for (const char* name : {"learner.state", "algorithm.state", "state.sha256"}) {
    const std::string path = absl::StrCat(store_->Path(20), "/", name);
    const std::string sound = ReadFile(path).value();
    std::vector<std::string> damages = {"", sound.substr(0, sound.size() / 2), sound + "x"};
    for (size_t at = 0; at < sound.size(); at += 7) {
      if (at >= 8 && at < 12 && std::string(name) != "state.sha256") continue;  // the version: another test
      std::string flipped = sound;
      flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
      damages.push_back(flipped);
    }
    for (const std::string& damage : damages) {
      WriteInPlace(path, damage);
      std::vector<std::string> notes;
      const auto loaded = store_->LoadNewest(&notes);
      ASSERT_THAT(loaded, IsOk()) << name << ": " << loaded.status();
      EXPECT_EQ(loaded->learner.update(), 10u) << name;
      ASSERT_EQ(notes.size(), 1u) << name;
      EXPECT_NE(notes[0].find(name), std::string::npos) << notes[0];
      EXPECT_EQ(store_->List(), std::vector<uint64_t>{10}) << "a damaged one counts among those that are kept";
      fs::rename(store_->Path(20) + ".damaged", store_->Path(20));
    }
    fs::remove(path);
    std::vector<std::string> notes;
    EXPECT_EQ(store_->LoadNewest(&notes)->learner.update(), 10u) << name << " missing";
    fs::rename(store_->Path(20) + ".damaged", store_->Path(20));
    WriteInPlace(path, sound);
  }
}

TEST_F(CheckpointStoreTest, WithAllDamagedEveryFileIsNamed) {
  Save(10);
  Save(20);
  for (const uint64_t update : {10, 20}) WriteInPlace(store_->Path(update) + "/algorithm.state", "torn");
  std::vector<std::string> notes;
  const absl::Status status = store_->LoadNewest(&notes).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(status.message().find("/10/algorithm.state"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("/20/algorithm.state"), absl::string_view::npos) << status;
}

TEST_F(CheckpointStoreTest, ADamagedVersionIsPassedOverLikeOtherDamage) {
  Save(10);
  Save(20);
  const std::string path = store_->Path(20) + "/learner.state";
  std::string content = ReadFile(path).value();
  content[8] = static_cast<char>(content[8] ^ 4);
  WriteInPlace(path, content);
  std::vector<std::string> notes;
  const auto loaded = store_->LoadNewest(&notes);
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->learner.update(), 10u);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("/20/learner.state"), std::string::npos) << notes[0];
}

TEST_F(CheckpointStoreTest, ACheckpointOfAnOlderBuildIsRefusedWithItsVersionAndAdvice) {
  Save(10);
  Save(20);
  const std::string path = store_->Path(20) + "/learner.state";
  WriteInPlace(path, testing::WithVersion(ReadFile(path).value(), 2));
  std::vector<std::string> notes;
  const absl::Status status = store_->LoadNewest(&notes).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("format version 2, this build reads version 6"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("build.txt"), absl::string_view::npos) << status;
}

TEST_F(CheckpointStoreTest, AFileThatIsLargerThanTheMemoryIsNamedAndNotRead) {
  constexpr uintmax_t kBytes = uintmax_t{1} << 36;  // without blocks
  Save(10);
  const std::string state = store_->Path(10) + "/algorithm.state";
  fs::resize_file(state, kBytes);
  const absl::Status extended = store_->Load(10).status();
  EXPECT_TRUE(absl::IsDataLoss(extended)) << extended;
  EXPECT_THAT(std::string(extended.message()), ::testing::HasSubstr(state + ": 687194"));
  EXPECT_THAT(std::string(extended.message()), ::testing::HasSubstr(" bytes follow its last one"));
  fs::resize_file(state, 0);
  fs::resize_file(state, kBytes);
  EXPECT_THAT(std::string(store_->Load(10).status().message()), ::testing::HasSubstr("its first bytes differ"));
}

TEST_F(CheckpointStoreTest, AWriteThatWasCutShortIsIgnoredAndRemoved) {
  Save(10);
  for (const char* name : {"/20.tmp", "/30.tmp", "/x.tmp"}) {
    fs::create_directories(folder_ + name);
    WriteInPlace(folder_ + name + "/learner.state", "half");
  }
  std::vector<std::string> notes;
  EXPECT_EQ(store_->LoadNewest(&notes)->learner.update(), 10u);
  EXPECT_FALSE(fs::exists(folder_ + "/20.tmp"));
  EXPECT_FALSE(fs::exists(folder_ + "/30.tmp"));
  EXPECT_TRUE(fs::exists(folder_ + "/x.tmp")) << "not of a checkpoint";
  Save(20);
  EXPECT_EQ(store_->LoadNewest(&notes)->learner.update(), 20u);
}

// The child ends with the code of its error.
TEST_F(CheckpointStoreTest, WhatAnotherUserMayNotReadStaysTheNewest) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can try it";
  fs::permissions(folder_, fs::perms::all);
  Save(10);
  Save(20);
  fs::permissions(store_->Path(20) + "/algorithm.state", fs::perms::owner_read);
  const int code = testing::ExitCodeOf([this] {
    if (::setgroups(0, nullptr) != 0 || ::setgid(10001) != 0 || ::setuid(10001) != 0) ::_exit(100);
    std::vector<std::string> notes;
    ::_exit(static_cast<int>(store_->LoadNewest(&notes).status().code()));
  });
  EXPECT_EQ(code, static_cast<int>(absl::StatusCode::kPermissionDenied));
  EXPECT_EQ(store_->List(), (std::vector<uint64_t>{20, 10}));
}

TEST_F(CheckpointStoreTest, AFolderThatCannotBeListedForNowIsNotTakenForANewRun) {
  Save(10);
  const int code = testing::ExitCodeOf([this] {
    const rlimit none{3, 3};
    std::vector<std::string> notes;
    ::_exit(::setrlimit(RLIMIT_NOFILE, &none) != 0 ? 100
                                                   : static_cast<int>(store_->LoadNewest(&notes).status().code()));
  });
  EXPECT_EQ(code, static_cast<int>(absl::StatusCode::kResourceExhausted));
}

TEST_F(CheckpointStoreTest, ACrashBetweenTheTwoRenamesLosesNothing) {
  Save(10);
  fs::rename(store_->Path(10), store_->Path(10) + ".old");
  std::vector<std::string> notes;
  EXPECT_EQ(store_->LoadNewest(&notes)->learner.update(), 10u);
}

TEST_F(CheckpointStoreTest, ASecondNameThatACrashLeftNeverComesBack) {
  Save(5);
  fs::create_directory(folder_ + "/5.old");  // half removed
  std::vector<std::string> notes;
  ASSERT_THAT(store_->LoadNewest(&notes), IsOk());
  Save(6);
  Save(7);
  ASSERT_THAT(store_->LoadNewest(&notes), IsOk());
  EXPECT_EQ(store_->List(), (std::vector<uint64_t>{7, 6}));
}

TEST_F(CheckpointStoreTest, OneThatIsReplacedWhileItIsReadIsReadWhole) {
  Save(5);
  std::atomic<bool> ends{false};
  std::thread writer([&] {
    for (int i = 0; i < 200; ++i) {
      Checkpoint next = At(5);
      next.algorithm["actor"] = std::string(100, static_cast<char>('a' + i % 26));
      EXPECT_THAT(store_->Save(std::move(next)), IsOk());
    }
    ends = true;
  });
  int read = 0;
  while (!ends) {
    const absl::StatusOr<Checkpoint> loaded = store_->Load(5);
    EXPECT_FALSE(absl::IsDataLoss(loaded.status())) << loaded.status();
    read += loaded.ok() ? 1 : 0;
  }
  writer.join();
  EXPECT_GT(read, 0);
}

TEST_F(CheckpointStoreTest, ARecordFileThatCannotBeReadIsNotCalledDamaged) {
  const FileEnd end{5, Sha256Hex("12345")};
  EXPECT_TRUE(absl::IsDataLoss(CheckFileEnd(folder_ + "/missing", end)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckFileEnd(folder_, end))) << CheckFileEnd(folder_, end);
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(CheckRunFile(folder_, "pipe", end), absl::InvalidArgumentError(folder_ + "/pipe is not a regular file"));
}

TEST_F(CheckpointStoreTest, AFileThatACheckpointNamesLiesBelowTheRunFolder) {
  for (const char* below : {"progress.csv", "ledger/member_0.steps", "tensorboard/member_0/..events"}) {
    EXPECT_TRUE(IsBelowRun(below)) << below;
  }
  for (const char* other : {"", ".", "./run_id", "..", "../secret", "/etc/hostname", "policies/../../secret"}) {
    EXPECT_FALSE(IsBelowRun(other)) << other;
  }
  WriteInPlace(folder_ + "/secret", "12345");
  const absl::Status status = CheckRunFile(folder_ + "/run", "../secret", {5, Sha256Hex("12345")});
  EXPECT_EQ(status.message(), folder_ + "/run/../secret is not below the run folder");
}

TEST_F(CheckpointStoreTest, ALinkAmongWhatARunWritesIsNamed) {
  const std::string run = folder_ + "/run";
  fs::create_directories(folder_ + "/elsewhere");
  EXPECT_THAT(CheckNoLinks(run), IsOk());
  for (const char* folder : {"/policies", "/replay"}) fs::create_directories(run + folder);
  fs::create_symlink(folder_ + "/elsewhere", run + "/replay/member_0.rows");
  EXPECT_THAT(CheckNoLinks(run), IsOk()) << "a ring may lie elsewhere";
  for (const std::string link : {"progress.csv", "checkpoints", "policies/epoch_0001.snapshot"}) {
    fs::create_symlink(folder_ + "/elsewhere", run + "/" + link);
    const absl::Status status = CheckNoLinks(run);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::StartsWith(run + "/" + link + " is a link; "));
    fs::remove(run + "/" + link);
  }
}

TEST_F(CheckpointStoreTest, ACheckpointHasTheNumbersOfEachMember) {
  const v1::Experiment experiment = ResolveExperiment(v1::Experiment());  // of one member
  v1::LearnerCheckpoint whole;
  whole.set_run_id("run");
  whole.set_experiment(PrintExperiment(experiment));
  whole.add_totals();
  whole.add_open()->add_members();
  whole.add_pending()->add_members();
  const auto check = [&experiment](const v1::LearnerCheckpoint& checkpoint) {
    return CheckResume(checkpoint, "run", FixedSettings(experiment), UpdatesOf(experiment));
  };
  EXPECT_THAT(check(whole), IsOk());
  std::vector<v1::LearnerCheckpoint> others(5, whole);
  others[0].clear_totals();
  others[1].add_totals();
  others[2].mutable_open(0)->add_members();
  others[3].mutable_pending(0)->add_members();
  others[4].mutable_pending(0)->clear_members();
  for (const v1::LearnerCheckpoint& other : others) {
    EXPECT_TRUE(absl::IsDataLoss(check(other))) << check(other) << other.ShortDebugString();
  }
}

TEST_F(CheckpointStoreTest, TheHashCoversNumbersAndNotTimesOrPaths) {
  Checkpoint other = At(5);
  other.learner.set_wall_seconds(99);
  other.learner.set_experiment("elsewhere");
  EXPECT_EQ(StateHash(At(5)), StateHash(other));
  other.algorithm["actor"][3] ^= 1;
  EXPECT_NE(StateHash(At(5)), StateHash(other));
}

TEST_F(CheckpointStoreTest, EveryStartHasItsOwnIncarnation) {
  const std::string path = folder_ + "/incarnation";
  EXPECT_EQ(*NextIncarnation(path), 1u);
  EXPECT_EQ(*NextIncarnation(path), 2u);
  WriteInPlace(path, "??");
  EXPECT_TRUE(absl::IsDataLoss(NextIncarnation(path).status()));
  WriteInPlace(path, "4294967295\n");
  EXPECT_TRUE(absl::IsDataLoss(NextIncarnation(path).status())) << "there is no larger number";
}

TEST_F(CheckpointStoreTest, TheIdOfARunIsALineThatACommandCanTake) {
  WriteInPlace(folder_ + "/run_id", "run-1\n");
  EXPECT_EQ(ReadRunId(folder_).value(), "run-1");
  for (const std::string& wrong : {std::string(256, 'a'), std::string(1 << 13, 'a'), std::string("a\nb"),
                                   std::string("a\0b", 3), std::string("a\xff")}) {
    WriteInPlace(folder_ + "/run_id", wrong);
    const absl::Status status = ReadRunId(folder_).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::StartsWith(folder_ + "/run_id"));
  }
}

TEST(Sha256, MatchesThePublishedVectors) {  // FIPS 180-4 examples
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
