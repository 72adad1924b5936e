// The whole learner process with its service, with a fake replay and a fake algorithm. Evaluators are real clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/version.h"
#include "common/config/experiment.h"
#include "common/records/checkpoint.h"
#include "common/rpc/channel.h"
#include "common/rpc/learner_client.h"
#include "learner/run_learner.h"
#include "tests/testing/fake_learner_run.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/patience.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::learner {
namespace {

using datacom::testing::IsOk;

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class LearnerProcessTest : public ::testing::Test {
 protected:
  LearnerProcessTest() : experiment_(FakeExperiment()), replay_(MakeFakeReplay(experiment_)) {
    options_.settings = MakeRunSettings(experiment_);
    options_.settings.acting_rule = "gaussian_policy";  // has the rows of the fake replay
    options_.algorithm = replay_.config;
    options_.run_id = "run";
    options_.run_dir = folder_;
    options_.address_file = folder_ + "/address";
    options_.server.calls_per_second = 1 << 30;  // Evaluate asks without a pause
    options_.metrics_listen = "127.0.0.1:0";
    options_.metrics_address_file = folder_ + "/metrics_address";
    seams_.open_draws = [this](uint64_t fingerprint, uint32_t, uint64_t) {
      EXPECT_EQ(fingerprint, replay_.schema.fingerprint());
      return std::make_unique<FakeDrawStream>(&replay_);
    };
    seams_.read_rows = [this](uint32_t member, uint64_t from, uint64_t to, const auto& consume) {
      return replay_.ReadRows(member, from, to, consume);
    };
    seams_.make_algorithm = [](const AlgorithmConfig& config) { return std::make_unique<FakeAlgorithm>(config); };
    seams_.wait_for_stop = [this](milliseconds timeout) {
      MutexLock lock(&mutex_);
      if (!stop_ && timeout.count() > 0) changed_.WaitFor(&mutex_, timeout);
      return stop_;
    };
  }
  void Stop() {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.NotifyAll();
  }
  // Does evaluations until the learner says that the run is finished. Returns the number of accepted reports.
  int Evaluate() {
    absl::StatusOr<std::string> address = absl::NotFoundError("");
    while (!(address = ReadFile(options_.address_file)).ok()) std::this_thread::yield();
    const auto channel = MakeChannel(std::string(absl::StripSuffix(*address, "\n")));
    int accepted = 0;
    for (;;) {
      v1::LeaseRequest lease;
      *lease.mutable_hello() = MakeHello("run", 0);
      lease.set_evaluator("evaluator");
      const auto item = LeaseEvaluation(channel, lease);
      if (!item.ok() || item->finished()) return accepted;
      if (item->lease() == 0) {
        std::this_thread::yield();
        continue;
      }
      v1::FetchRequest fetch;
      *fetch.mutable_hello() = MakeHello("run", 0);
      fetch.set_member(item->member());
      fetch.set_epoch(item->epoch());
      const auto snapshot = FetchSnapshot(channel, fetch);
      EXPECT_THAT(snapshot, IsOk());
      v1::ReportRequest report;
      *report.mutable_hello() = MakeHello("run", 0);
      report.set_lease(item->lease());
      report.set_member(item->member());
      report.set_epoch(item->epoch());
      for (uint32_t i = 0; i < item->episodes(); ++i) report.add_episodes()->set_return_(1);
      const auto reply = ReportEvaluation(channel, report);
      accepted += reply.ok() && reply->accepted();
    }
  }
  int ProgressRows() {
    return static_cast<int>(
               std::vector<std::string>(absl::StrSplit(*ReadFile(folder_ + "/progress.csv"), '\n', absl::SkipEmpty()))
                   .size()) -
           1;
  }

  // The content of every file of the folder, by path.
  std::map<std::string, std::string> Contents() const {
    std::map<std::string, std::string> contents;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file()) contents[entry.path().string()] = ReadFile(entry.path().string()).value();
    }
    return contents;
  }

  const datacom::testing::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path() + "/run";
  const v1::Experiment experiment_;
  const FakeReplay replay_;
  ProcessOptions options_;
  ProcessSeams seams_;
  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST_F(LearnerProcessTest, ARunCompletesAndTellsItsEvaluatorsToLeave) {
  int accepted = 0;
  std::thread evaluator([&] { accepted = Evaluate(); });
  const absl::Status status = RunLearner(options_, FakeTaskModel(), seams_);
  evaluator.join();
  EXPECT_THAT(status, IsOk());
  EXPECT_EQ(accepted, 8);
  EXPECT_EQ(ProgressRows(), 8);
  for (const char* name : {"build.txt", "episodes.csv", "checkpoints/230/state.sha256", "policies/epoch_0003.snapshot",
                           "tensorboard/member_1"}) {
    EXPECT_TRUE(fs::exists(folder_ + "/" + name)) << name;
  }
  EXPECT_EQ(*ReadFile(folder_ + "/experiment.textproto"), PrintExperiment(experiment_));
  EXPECT_THAT(
      *ReadFile(folder_ + "/build.txt"),
      ::testing::ContainsRegex("\nrevision .+\n(.*\n)*machine .+, [1-9][0-9]* processors\nstarted 20..-..-..\n"));
}

TEST_F(LearnerProcessTest, TheReplayIsToldOnceEveryRecordIsWrittenAndAskedAgainWhileItIsAway) {
  std::vector<int> rows;
  seams_.finish_run = [&](uint64_t completed_update, uint32_t incarnation) -> absl::Status {
    EXPECT_EQ(completed_update, 230u);
    EXPECT_EQ(incarnation, 1u);
    rows.push_back(ProgressRows());
    return rows.size() < 3 ? absl::UnavailableError("moving") : absl::OkStatus();
  };
  std::thread evaluator([&] { Evaluate(); });
  EXPECT_THAT(RunLearner(options_, FakeTaskModel(), seams_), IsOk());
  evaluator.join();
  EXPECT_THAT(rows, ::testing::ElementsAre(8, 8, 8));
}

TEST_F(LearnerProcessTest, ARefusalOfTheReplayDoesNotSpoilACompleteRunAndAnInterruptedOneTellsNothing) {
  int told = 0;
  seams_.finish_run = [&](uint64_t, uint32_t) {
    ++told;
    return absl::FailedPreconditionError("no");
  };
  Stop();
  EXPECT_TRUE(absl::IsCancelled(RunLearner(options_, FakeTaskModel(), seams_)));
  EXPECT_EQ(told, 0);
  {
    MutexLock lock(&mutex_);
    stop_ = false;
  }
  fs::remove(options_.address_file);
  std::thread evaluator([&] { Evaluate(); });
  EXPECT_THAT(RunLearner(options_, FakeTaskModel(), seams_), IsOk());
  evaluator.join();
  EXPECT_EQ(told, 1);
}

TEST(BuildText, KeepsEverySimulatorThatTheRunHasUsed) {
  const std::string own = Simulator();
  const auto line = [](const std::string& simulators) {
    return ::testing::HasSubstr("\nsimulators " + simulators + "\n");
  };
  EXPECT_THAT(BuildText(""), line(own));
  EXPECT_THAT(BuildText(BuildText("")), line(own));
  EXPECT_THAT(BuildText("version 0\nsimulators MuJoCo 0.9.9\n"), line("MuJoCo 0.9.9, " + own));
  EXPECT_THAT(BuildText("version 0\nsimulators MuJoCo 0.9.9, " + own + "\n"), line("MuJoCo 0.9.9, " + own));
  EXPECT_THAT(BuildText("version 0\n"), line("not recorded, " + own));
}

TEST_F(LearnerProcessTest, ARefusedResumeLeavesTheFolderAsItWas) {
  Stop();
  EXPECT_TRUE(absl::IsCancelled(RunLearner(options_, FakeTaskModel(), seams_)));
  std::ofstream(folder_ + "/episodes.csv", std::ios::app) << "rows after the newest checkpoint\n";
  std::ofstream(folder_ + "/ledger/violations.csv", std::ios::app) << "rows after the newest checkpoint\n";
  std::ofstream(folder_ + "/build.txt") << "version of an earlier build\n";
  const std::map<std::string, std::string> before = Contents();
  const auto refused = [&](const ProcessOptions& options) {
    const absl::Status status = RunLearner(options, FakeTaskModel(), seams_);
    EXPECT_EQ(Contents(), before) << status;
    return status;
  };
  ProcessOptions other = options_;
  v1::Experiment changed = experiment_;
  changed.mutable_members(0)->set_seed(experiment_.members(0).seed() + 1000);
  other.settings.fixed = MakeRunSettings(changed).fixed;
  EXPECT_TRUE(absl::IsInvalidArgument(refused(other)));
  other = options_;
  other.run_id = "another";
  EXPECT_TRUE(absl::IsFailedPrecondition(refused(other)));
  seams_.make_algorithm = [](AlgorithmConfig config) {
    config.members.resize(1);
    return std::make_unique<FakeAlgorithm>(config);
  };
  EXPECT_TRUE(absl::IsInvalidArgument(refused(options_))) << "a state of another size";
}

// The checkpoint names a checksum of every record file.
TEST_F(LearnerProcessTest, AResumeWithAChangedShortenedOrMissingRecordIsRefusedByNameAndLeavesTheFolderAsItWas) {
  Stop();
  EXPECT_TRUE(absl::IsCancelled(RunLearner(options_, FakeTaskModel(), seams_)));
  for (const std::string file : {"progress.csv", "episodes.csv", "ledger/violations.csv", "ledger/member_1.steps",
                                 "tensorboard/member_0/events.out.tfevents.0.datacom"}) {
    const std::string path = folder_ + "/" + file, whole = ReadFile(path).value();
    std::string changed = whole;
    changed[changed.size() - 2] ^= 1;
    for (const std::string& content : {changed, whole.substr(0, whole.size() - 1), std::string()}) {
      if (content.empty()) {
        fs::remove(path);
      } else {
        std::ofstream(path, std::ios::binary) << content;
      }
      const std::map<std::string, std::string> before = Contents();
      const absl::Status status = RunLearner(options_, FakeTaskModel(), seams_);
      EXPECT_TRUE(absl::IsDataLoss(status)) << file << ": " << status;
      EXPECT_NE(status.message().find(file), absl::string_view::npos) << status;
      EXPECT_EQ(Contents(), before) << file;
    }
    std::ofstream(path, std::ios::binary) << whole;
  }
}

TEST_F(LearnerProcessTest, ACheckpointThatNamesNotAllRecordsIsRefusedAndLeavesTheFolderAsItWas) {
  Stop();
  EXPECT_TRUE(absl::IsCancelled(RunLearner(options_, FakeTaskModel(), seams_)));
  const CheckpointStore store(folder_ + "/checkpoints");
  const Checkpoint whole = store.Load(store.List().front()).value();
  const auto refusal = [&](const Checkpoint& checkpoint) {
    EXPECT_THAT(store.Save(checkpoint), IsOk());
    const std::map<std::string, std::string> before = Contents();
    const absl::Status status = RunLearner(options_, FakeTaskModel(), seams_);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_EQ(Contents(), before);
    return std::string(status.message());
  };
  for (int i = 0; i < whole.learner.files_size(); ++i) {
    Checkpoint less = whole;
    less.learner.mutable_files()->DeleteSubrange(i, 1);
    EXPECT_EQ(refusal(less), "the checkpoint does not name the end of " + whole.learner.files(i).path());
  }
  Checkpoint none = whole;
  none.learner.clear_files();
  EXPECT_THAT(refusal(none), ::testing::HasSubstr("it names no record files"));
}

TEST_F(LearnerProcessTest, AResumeWithoutACheckpointMakesNoFolder) {
  options_.must_resume = true;
  const absl::Status status = RunLearner(options_, FakeTaskModel(), seams_);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find(folder_ + "/checkpoints: no checkpoint"), absl::string_view::npos) << status;
  EXPECT_FALSE(fs::exists(folder_));
}

// Answers no draw and gives no reason.
class SilentDrawStream : public DrawStream {
 public:
  void Request(uint64_t) override {}
  void Announce(uint64_t) override {}
  absl::StatusOr<v1::DrawReply> Next(milliseconds timeout) override {
    MutexLock lock(&mutex_);
    if (!cancelled_) changed_.WaitFor(&mutex_, timeout);
    return cancelled_ ? absl::CancelledError("") : absl::DeadlineExceededError("");
  }
  void Cancel() override {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST_F(LearnerProcessTest, AWaitingLearnerAlwaysSaysForWhat) {
  seams_.open_draws = [](uint64_t, uint32_t, uint64_t) { return std::make_unique<SilentDrawStream>(); };
  std::thread observer([this] {
    absl::StatusOr<std::string> address = absl::NotFoundError("");
    while (!(address = ReadFile(options_.address_file)).ok()) std::this_thread::yield();
    const auto channel = MakeChannel(std::string(absl::StripSuffix(*address, "\n")));
    std::string reason;
    testing::WaitUntil([&] { return !reason.empty(); },
                       [&] {
                         const auto info = GetLearnerInfo(channel, testing::kPatience);
                         if (info.ok()) reason = info->waiting_for();
                       });
    EXPECT_EQ(reason, "the draw has not come yet");
    Stop();
  });
  EXPECT_TRUE(absl::IsCancelled(RunLearner(options_, FakeTaskModel(), seams_)));
  observer.join();
}

TEST_F(LearnerProcessTest, AStoppedRunIsContinuedUnderANewIncarnation) {
  Stop();
  EXPECT_TRUE(absl::IsCancelled(RunLearner(options_, FakeTaskModel(), seams_)));
  {
    MutexLock lock(&mutex_);
    stop_ = false;
  }
  fs::remove(options_.address_file);
  options_.must_resume = true;
  std::thread evaluator([&] { Evaluate(); });
  const absl::Status status = RunLearner(options_, FakeTaskModel(), seams_);
  evaluator.join();
  EXPECT_THAT(status, IsOk());
  EXPECT_EQ(ProgressRows(), 8);
  EXPECT_EQ(*ReadFile(folder_ + "/checkpoints/incarnation"), "2\n");
  EXPECT_EQ(*ReadFile(folder_ + "/checkpoints/updates"),
            "reached 00000000000000000230\nrepeated 00000000000000000000\n");
  const auto snapshots = ReadSnapshotFile(folder_ + "/policies/epoch_0003.snapshot");
  ASSERT_THAT(snapshots, IsOk());
  EXPECT_TRUE(snapshots->at(0).version == (SnapshotVersion{2, 230}));
}

TEST_F(LearnerProcessTest, AnAlgorithmThatThrowsOnConstructionIsAConfigurationError) {
  seams_.make_algorithm = [](const AlgorithmConfig&) -> std::unique_ptr<Algorithm> {
    throw std::invalid_argument("actor_hidden: empty");
  };
  const absl::Status status = RunLearner(options_, FakeTaskModel(), seams_);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_NE(status.message().find("actor_hidden: empty"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
