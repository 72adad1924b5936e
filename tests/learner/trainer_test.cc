#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "tests/testing/datasets.h"
#include "tests/testing/fake_learner_run.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::learner {
namespace {

using datacom::testing::IsOk;

namespace fs = std::filesystem;

class TrainerTest : public ::testing::Test {
 protected:
  std::string Folder(const std::string& name) const { return temporary_.path() + "/" + name; }

 private:
  const datacom::testing::TemporaryFolder temporary_;
};

// progress.csv without wall_seconds, the sixth column.
std::string Progress(const std::string& folder) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(*ReadFile(folder + "/progress.csv"), '\n')) {
    std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (cells.size() > 5) cells[5].clear();
    lines.push_back(absl::StrJoin(cells, ","));
  }
  return absl::StrJoin(lines, "\n");
}

std::string FinalHash(const std::string& folder) {
  const CheckpointStore store(folder + "/checkpoints");
  return *ReadFile(store.Path(store.List().front()) + "/state.sha256");
}

std::vector<std::vector<std::string>> Rows(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  for (absl::string_view line : absl::StrSplit(csv, '\n', absl::SkipEmpty())) rows.push_back(absl::StrSplit(line, ','));
  return rows;
}

TEST_F(TrainerTest, ARunWritesOneRowPerMemberAndEpochAlsoForAShortLastEpoch) {
  const std::string folder = Folder("run");
  const RunOutcome outcome = RunFake(folder, FakeExperiment());
  ASSERT_THAT(outcome.status, IsOk());
  EXPECT_EQ(outcome.update, 230u);  // 250 rows - 20
  EXPECT_EQ(outcome.announced, 230u);
  EXPECT_EQ(outcome.abandoned, (std::vector<double>{0, 1})) << "of the newest evaluation's two episodes";
  const auto rows = Rows(Progress(folder));
  ASSERT_EQ(rows.size(), 1u + 4 * 2);  // header; epochs 0, 1, 2 and the cut third, two members
  const auto column = [&](const std::string& name) {
    return std::find(rows[0].begin(), rows[0].end(), name) - rows[0].begin();
  };
  const std::vector<std::vector<std::string>> expected = {
      {"0", "0", "0"}, {"1", "100", "80"}, {"2", "200", "180"}, {"3", "250", "230"}};
  for (size_t i = 1; i < rows.size(); ++i) {
    const auto& row = rows[i];
    EXPECT_EQ(row[column("member")], std::to_string((i - 1) % 2));
    EXPECT_EQ(row[column("seed")], std::to_string(100 + (i - 1) % 2));
    EXPECT_EQ(row[column("epoch")], expected[(i - 1) / 2][0]);
    EXPECT_EQ(row[column("env_steps")], expected[(i - 1) / 2][1]);
    EXPECT_EQ(row[column("updates")], expected[(i - 1) / 2][2]);
    const bool abandoned = row[column("member")] == "1";  // of its two episodes the second, which failed
    EXPECT_EQ(row[column("eval_episodes")], abandoned ? "1" : "2");
    EXPECT_EQ(row[column("eval_success_rate")], abandoned ? "1" : "0.5");
    EXPECT_EQ(row[column("status")], "ok");
  }
  EXPECT_EQ(rows[1][column("train_return")], "");  // no episode had ended before epoch 0
  EXPECT_EQ(rows[1][column("policy_loss")], "");
  EXPECT_EQ(rows[1][column("samples_per_insert")], "");
  EXPECT_EQ(rows[3][column("train_episodes")], "10");
  EXPECT_EQ(rows[3][column("train_return")], "55");  // mean of 10, 20, .. 100
  EXPECT_EQ(rows[3][column("train_max_violation")], "0.25");
  EXPECT_EQ(rows[3][column("train_violating_steps")], "3");
  EXPECT_EQ(rows[3][column("samples_per_insert")], "1");
  EXPECT_EQ(rows[3][column("policy_lag")], "0");
  EXPECT_EQ(rows[7][column("train_episodes")], "5");
}

TEST_F(TrainerTest, WithAnEvaluationPeriodTheRowsOfTheEpochsBetweenHaveNoEvaluation) {
  const std::string folder = Folder("run");
  v1::Experiment experiment = FakeExperiment();
  experiment.mutable_run()->set_eval_period(2);
  ASSERT_THAT(RunFake(folder, experiment).status, IsOk());
  const auto rows = Rows(Progress(folder));
  ASSERT_EQ(rows.size(), 1u + 4 * 2);
  const auto column = [&](const std::string& name) {
    return std::find(rows[0].begin(), rows[0].end(), name) - rows[0].begin();
  };
  for (size_t i = 1; i < rows.size(); i += 2) {
    const bool evaluated = rows[i][column("epoch")] != "1";  // 0, 2 and the last one, 3
    EXPECT_EQ(rows[i][column("eval_episodes")], evaluated ? "2" : "0");
    EXPECT_EQ(rows[i][column("eval_success_rate")], evaluated ? "0.5" : "");
    EXPECT_EQ(rows[i][column("train_episodes")], i < 3 ? "0" : i < 7 ? "10" : "5");
  }
}

TEST_F(TrainerTest, EpisodesAreRecordedInTheOrderOfTheirRows) {
  const std::string folder = Folder("run");
  ASSERT_THAT(RunFake(folder, FakeExperiment(/*members=*/1)).status, IsOk());
  const auto rows = Rows(*ReadFile(folder + "/episodes.csv"));
  ASSERT_EQ(rows.size(), 1u + 25);
  EXPECT_EQ(absl::StrJoin(rows[0], ","),
            "member,session,environment,episode,env_steps,length,discounted_return,return,max_violation,sum_cost,"
            "violating_steps,policy_version");
  for (size_t i = 1; i < rows.size(); ++i) EXPECT_EQ(rows[i][4], std::to_string(10 * i));
}

TEST_F(TrainerTest, DeltaMovesBeforeTheUpdateThatFirstSeesTheEpisodeAndOnlyAfterTheWarmUp) {
  const RunOutcome outcome = RunFake(Folder("run"), FakeExperiment(/*members=*/1));
  ASSERT_THAT(outcome.status, IsOk());
  // Warm-up 64 rows: the episode that ends at row 70 is the first with more than 64 rows before its last one.
  ASSERT_EQ(outcome.applied.size(), 19u);  // rows 70, 80, .. 250
  for (size_t i = 0; i < outcome.applied.size(); ++i) {
    EXPECT_EQ(outcome.applied[i].before_update, 70 + 10 * i - 20);  // n(u) = 20 + u
  }
}

TEST_F(TrainerTest, TheWarmUpBoundIsExact) {
  for (const auto& [warmup, first] : {std::pair<uint64_t, uint64_t>{68, 70}, {69, 80}}) {
    v1::Experiment experiment = FakeExperiment(/*members=*/1);
    experiment.mutable_hyper()->set_delta_warmup(warmup);
    const RunOutcome outcome = RunFake(Folder(std::to_string(warmup)), experiment);
    ASSERT_FALSE(outcome.applied.empty());
    EXPECT_EQ(outcome.applied[0].before_update + 20, first) << "warm-up " << warmup;
  }
}

TEST_F(TrainerTest, ARunThatWasInterruptedAnywhereEqualsOneThatWasNot) {
  const std::string whole = Folder("whole");
  const RunOutcome uninterrupted = RunFake(whole, FakeExperiment());
  ASSERT_THAT(uninterrupted.status, IsOk());
  for (const uint64_t at : {0, 29, 80, 81, 229}) {
    const std::string folder = Folder(absl::StrCat("cut", at));
    const RunOutcome first = RunFake(folder, FakeExperiment(), {/*stop_at_update=*/at});
    EXPECT_TRUE(absl::IsCancelled(first.status)) << first.status;
    EXPECT_EQ(first.update, at);
    const RunOutcome second = RunFake(folder, FakeExperiment());
    ASSERT_THAT(second.status, IsOk());
    EXPECT_EQ(second.info.repeated_updates(), 0u);
    EXPECT_EQ(Progress(folder), Progress(whole)) << "stopped at update " << at;
    EXPECT_EQ(*ReadFile(folder + "/episodes.csv"), *ReadFile(whole + "/episodes.csv"));
    EXPECT_EQ(FinalHash(folder), FinalHash(whole));
    EXPECT_EQ(first.applied.size() + second.applied.size(), uninterrupted.applied.size());
  }
}

TEST_F(TrainerTest, ARunThatWasKilledAnywhereEqualsOneThatWasNot) {
  const std::string whole = Folder("whole");
  ASSERT_THAT(RunFake(whole, FakeExperiment()).status, IsOk());
  // The fake throws before it makes the update. Checkpoints are at 0, 70, 80, 140, 180, 210 and 230.
  for (const auto& [at, repeated] : std::vector<std::pair<uint64_t, uint64_t>>{{1, 0}, {80, 9}, {181, 0}, {230, 19}}) {
    const std::string folder = Folder(absl::StrCat("killed", at));
    // In half of the cases evaluations are still open at the kill.
    const RunOutcome first =
        RunFake(folder, FakeExperiment(), {UINT64_MAX, /*evaluate=*/at % 2 == 0, /*throw_at_update=*/at});
    EXPECT_EQ(first.status.code(), absl::StatusCode::kInternal) << first.status;
    EXPECT_NE(first.status.message().find("the fake was told to fail"), absl::string_view::npos);
    const RunOutcome second = RunFake(folder, FakeExperiment());
    ASSERT_THAT(second.status, IsOk());
    EXPECT_EQ(second.info.repeated_updates(), repeated) << "killed in update " << at;
    EXPECT_EQ(second.repeated_gauge, static_cast<double>(repeated));
    EXPECT_EQ(Progress(folder), Progress(whole)) << "killed in update " << at;
    EXPECT_EQ(*ReadFile(folder + "/episodes.csv"), *ReadFile(whole + "/episodes.csv"));
    EXPECT_EQ(FinalHash(folder), FinalHash(whole));
  }
}

TEST_F(TrainerTest, RepeatedUpdatesAddUpOverSeveralKillsAndStops) {
  const std::string folder = Folder("killed");
  RunPlan kill, stop;
  const auto repeated_after = [&](const RunPlan& plan) {
    return RunFake(folder, FakeExperiment(), plan).info.repeated_updates();
  };
  kill.throw_at_update = 60;
  EXPECT_EQ(repeated_after(kill), 0u);
  kill.throw_at_update = 70;
  EXPECT_EQ(repeated_after(kill), 59u);
  stop.stop_at_update = 100;
  EXPECT_EQ(repeated_after(stop), 59u + 69u);
  kill.throw_at_update = 131;
  EXPECT_EQ(repeated_after(kill), 59u + 69u) << "the stop before wrote a checkpoint";
  EXPECT_EQ(repeated_after({}), 59u + 69u + 30u) << "130 was reached, 100 was the newest checkpoint";
  EXPECT_EQ(*ReadFile(UpdatesMadeFile(folder)), "reached 00000000000000000230\nrepeated 00000000000000000158\n");
}

TEST_F(TrainerTest, AKillAfterEpochsThatEndBeforeTheFirstUpdateRepeatsNoEpisode) {
  v1::Experiment experiment = FakeExperiment();
  experiment.mutable_run()->set_steps_per_epoch(40);
  experiment.mutable_replay()->set_min_size(100);
  const std::string whole = Folder("whole"), folder = Folder("killed");
  ASSERT_THAT(RunFake(whole, experiment).status, IsOk());
  EXPECT_FALSE(RunFake(folder, experiment, {UINT64_MAX, /*evaluate=*/true, /*throw_at_update=*/1}).status.ok());
  ASSERT_THAT(RunFake(folder, experiment).status, IsOk());
  EXPECT_EQ(Progress(folder), Progress(whole));
  EXPECT_EQ(*ReadFile(folder + "/episodes.csv"), *ReadFile(whole + "/episodes.csv"));
}

TEST_F(TrainerTest, DrawsRequestedAheadChangeNoNumber) {
  const std::string one = Folder("one"), many = Folder("many");
  ASSERT_THAT(RunFake(one, FakeExperiment()).status, IsOk());
  RunPlan plan;
  plan.ahead = 32;
  const RunOutcome outcome = RunFake(many, FakeExperiment(), plan);
  ASSERT_THAT(outcome.status, IsOk());
  EXPECT_EQ(outcome.most_asked, 32u);
  EXPECT_EQ(Progress(one), Progress(many));
  EXPECT_EQ(FinalHash(one), FinalHash(many));
}

TEST_F(TrainerTest, ManySmallOrFewLargeDrawsAreRequestedAhead) {
  v1::Experiment experiment = FakeExperiment();
  experiment.mutable_learner()->set_batch_size(64);
  const RowSchema schema = MakeFakeReplay(experiment).schema;
  EXPECT_EQ(DrawsAhead(MakeRunSettings(experiment), schema), 32);
  experiment.mutable_learner()->set_batch_size(16384);
  const int large = DrawsAhead(MakeRunSettings(experiment), schema);
  EXPECT_GT(large, 4);
  EXPECT_LT(large, 32);
  experiment.mutable_learner()->set_batch_size(1 << 20);
  EXPECT_EQ(DrawsAhead(MakeRunSettings(experiment), schema), 4);
  experiment.mutable_run()->set_lockstep(true);
  EXPECT_EQ(DrawsAhead(MakeRunSettings(experiment), schema), 1);
  experiment.mutable_run()->set_lockstep(false);
  experiment.set_algorithm("ppo_lag");
  EXPECT_EQ(DrawsAhead(MakeRunSettings(experiment), schema), 1) << "the next rows are not acted yet";
}

TEST_F(TrainerTest, FewUpdatesAreAnnouncedTogether) {
  v1::Experiment experiment = FakeExperiment();  // a tolerance of 16 rows
  EXPECT_EQ(AnnouncedTogether(MakeRunSettings(experiment)), 4u);
  experiment.mutable_schedule()->set_updates_per_step(2);
  EXPECT_EQ(AnnouncedTogether(MakeRunSettings(experiment)), 8u);
  experiment.mutable_schedule()->set_tolerance_steps(1);
  EXPECT_EQ(AnnouncedTogether(MakeRunSettings(experiment)), 1u);
  experiment.mutable_schedule()->set_tolerance_steps(64);
  EXPECT_EQ(AnnouncedTogether(MakeRunSettings(experiment)), 8u) << "a sixteenth of a lag of 128";
  experiment.mutable_run()->set_lockstep(true);
  EXPECT_EQ(AnnouncedTogether(MakeRunSettings(experiment)), 1u) << "the rows of the next update wait for the credit";
}

TEST_F(TrainerTest, EpochsThatEndBeforeTheFirstUpdateKeepTheirEpisodes) {
  v1::Experiment experiment = FakeExperiment(/*members=*/1);
  experiment.mutable_run()->set_steps_per_epoch(40);
  experiment.mutable_replay()->set_min_size(100);
  const std::string folder = Folder("run");
  ASSERT_THAT(RunFake(folder, experiment).status, IsOk());
  const auto rows = Rows(Progress(folder));
  ASSERT_EQ(rows.size(), 1u + 8);  // epochs 0 .. 6 of 40 steps and a seventh of 10
  EXPECT_EQ(rows[2][3], "40");     // env_steps
  EXPECT_EQ(rows[2][4], "0");      // updates
  const size_t episodes = std::find(rows[0].begin(), rows[0].end(), "train_episodes") - rows[0].begin();
  EXPECT_EQ(rows[2][episodes], "4");
  EXPECT_EQ(rows[4][3], "120");
  EXPECT_EQ(rows[4][4], "20");
  EXPECT_EQ(rows[4][episodes], "4");
}

TEST_F(TrainerTest, ALongerRunContinuesTheEpochThatTheOldEndCut) {
  const std::string folder = Folder("run");
  ASSERT_THAT(RunFake(folder, FakeExperiment(1)).status, IsOk());
  v1::Experiment longer = FakeExperiment(1);
  longer.mutable_run()->set_env_steps(400);
  const RunOutcome outcome = RunFake(folder, longer);
  ASSERT_THAT(outcome.status, IsOk());
  EXPECT_EQ(outcome.update, 380u);
  const auto rows = Rows(Progress(folder));
  std::vector<std::string> steps;
  for (size_t i = 1; i < rows.size(); ++i) steps.push_back(rows[i][3]);
  EXPECT_EQ(steps, (std::vector<std::string>{"0", "100", "200", "250", "300", "400"}));
}

TEST_F(TrainerTest, ALongerRunHasTheNumbersOfOneThatWasAsLongFromTheStart) {
  v1::Experiment longer = FakeExperiment();
  longer.mutable_run()->set_env_steps(400);
  const std::string whole = Folder("whole");
  ASSERT_THAT(RunFake(whole, longer).status, IsOk());
  RunPlan unevaluated;
  unevaluated.evaluate = false;
  unevaluated.stop_at_update = 230;
  for (const RunPlan& plan : {RunPlan(), unevaluated}) {
    const std::string folder = Folder(plan.evaluate ? "evaluated" : "unevaluated");
    EXPECT_EQ(RunFake(folder, FakeExperiment(), plan).status.ok(), plan.evaluate);
    // Made longer twice within the same epoch.
    v1::Experiment between = FakeExperiment();
    between.mutable_run()->set_env_steps(270);
    ASSERT_THAT(RunFake(folder, between).status, IsOk());
    ASSERT_THAT(RunFake(folder, longer).status, IsOk());
    std::vector<std::string> lines = absl::StrSplit(Progress(folder), '\n');
    const auto cut = [](const std::string& line) {
      return absl::StrContains(line, ",3,250,") || absl::StrContains(line, ",3,270,");
    };
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(), cut), plan.evaluate ? 4 : 2);
    lines.erase(std::remove_if(lines.begin(), lines.end(), cut), lines.end());
    EXPECT_EQ(absl::StrJoin(lines, "\n"), Progress(whole));
    EXPECT_EQ(FinalHash(folder), FinalHash(whole));
  }
}

TEST_F(TrainerTest, AnotherExperimentIsRefusedOnResume) {
  const std::string folder = Folder("run");
  ASSERT_THAT(RunFake(folder, FakeExperiment()).status, IsOk());
  v1::Experiment other = FakeExperiment();
  other.mutable_hyper()->set_actor_lr(0.1);
  EXPECT_TRUE(absl::IsInvalidArgument(RunFake(folder, other).status));
  v1::Experiment elsewhere = FakeExperiment();
  elsewhere.mutable_learner()->set_threads(3);
  elsewhere.mutable_learner()->set_pin_threads(true);
  EXPECT_THAT(RunFake(folder, elsewhere).status, IsOk()) << "threads change no number";
  v1::Experiment shorter = FakeExperiment();
  shorter.mutable_run()->set_env_steps(100);
  const absl::Status status = RunFake(folder, shorter).status;
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_NE(status.message().find("run.env_steps=100"), absl::string_view::npos) << status;
}

TEST_F(TrainerTest, ACheckpointOfABuildThatKnewFewerSettingsIsContinued) {
  const std::string folder = Folder("run");
  ASSERT_TRUE(absl::IsCancelled(RunFake(folder, FakeExperiment(), {/*stop_at_update=*/150}).status));
  const CheckpointStore store(folder + "/checkpoints");
  std::vector<std::string> notes;
  Checkpoint checkpoint = store.LoadNewest(&notes).value();
  v1::Experiment written = ParseExperiment(checkpoint.learner.experiment(), "test").value();
  written.mutable_hyper()->clear_delta_lr();
  written.mutable_learner()->clear_discount();
  checkpoint.learner.set_experiment(PrintExperiment(written));
  ASSERT_THAT(store.Save(checkpoint), IsOk());
  const RunOutcome outcome = RunFake(folder, FakeExperiment());
  EXPECT_THAT(outcome.status, IsOk());
  EXPECT_EQ(outcome.update, 230u);
}

TEST_F(TrainerTest, WithoutEvaluatorsARunTrainsToItsEndAndKeepsTheItems) {
  const std::string folder = Folder("run");
  RunPlan plan;
  plan.evaluate = false;
  plan.stop_at_update = 230;  // only once training is over
  const RunOutcome outcome = RunFake(folder, FakeExperiment(), plan);
  EXPECT_TRUE(absl::IsCancelled(outcome.status));
  EXPECT_EQ(outcome.update, 230u);
  EXPECT_EQ(Rows(Progress(folder)).size(), 1u);
  ASSERT_THAT(RunFake(folder, FakeExperiment()).status, IsOk());
  EXPECT_EQ(Rows(Progress(folder)).size(), 1u + 8);
}

TEST_F(TrainerTest, EvaluatorsAreDismissedOnceACheckpointHoldsEveryResult) {
  const std::string folder = Folder("run");
  int dismissed = 0;
  RunPlan plan;
  plan.on_dismissed = [&] {
    ++dismissed;
    std::vector<std::string> notes;
    const auto checkpoint = CheckpointStore(folder + "/checkpoints").LoadNewest(&notes);
    ASSERT_THAT(checkpoint, IsOk());
    EXPECT_EQ(checkpoint->learner.next_epoch(), 4u);
    EXPECT_EQ(checkpoint->learner.pending_size(), 0) << "a learner killed now would ask for evaluations again";
  };
  ASSERT_THAT(RunFake(folder, FakeExperiment(), plan).status, IsOk());
  EXPECT_EQ(dismissed, 1);
}

TEST_F(TrainerTest, AFinishedRunThatIsStartedAgainStillDismissesItsEvaluators) {
  const std::string folder = Folder("run");
  ASSERT_THAT(RunFake(folder, FakeExperiment()).status, IsOk());
  int dismissed = 0;
  RunPlan plan;
  plan.on_dismissed = [&] { ++dismissed; };
  ASSERT_THAT(RunFake(folder, FakeExperiment(), plan).status, IsOk());
  EXPECT_EQ(dismissed, 1);
}

TEST_F(TrainerTest, EachEpochWritesItsPolicies) {
  const std::string folder = Folder("run");
  ASSERT_THAT(RunFake(folder, FakeExperiment()).status, IsOk());
  for (const int epoch : {0, 1, 2, 3}) {
    const auto snapshots = ReadSnapshotFile(absl::StrCat(folder, "/policies/epoch_000", epoch, ".snapshot"));
    ASSERT_THAT(snapshots, IsOk());
    EXPECT_EQ(snapshots->size(), 2u);
    EXPECT_EQ((*snapshots)[1].member_seed, 101u);
  }
}

TEST_F(TrainerTest, ARecordFileShorterThanItsCheckpointSaysIsRefused) {
  const std::string folder = Folder("run");
  ASSERT_TRUE(absl::IsCancelled(RunFake(folder, FakeExperiment(), {/*stop_at_update=*/150}).status));
  fs::resize_file(folder + "/episodes.csv", 130);
  const absl::Status status = RunFake(folder, FakeExperiment()).status;
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(status.message().find("episodes.csv"), absl::string_view::npos) << status;
}

// The fake experiment, pre-trained on a small dataset.
class PretrainingTest : public TrainerTest {
 protected:
  PretrainingTest() {
    const std::string dataset = Folder("dataset");
    EXPECT_THAT(datacom::testing::MakeDataset(dataset, RowSchema::For(2, 1), {50, 30}), IsOk());
    experiment_.mutable_pretrain()->set_dataset(dataset);
    experiment_.mutable_pretrain()->set_updates(100);
  }
  v1::Experiment experiment_ = FakeExperiment();
};

TEST_F(PretrainingTest, PretrainingComesBeforeActingAndHasACountOfItsOwn) {
  RunPlan plan;
  plan.stop_at_pretrain_update = 60;
  const std::string folder = Folder("run");
  const RunOutcome stopped = RunFake(folder, experiment_, plan);
  EXPECT_TRUE(absl::IsCancelled(stopped.status)) << stopped.status;
  EXPECT_EQ(stopped.pretrain_update, 60u);
  EXPECT_EQ(stopped.update, 0u);
  EXPECT_FALSE(stopped.published) << "an actor could have acted";
  EXPECT_EQ(stopped.info.phase(), "pre-training");
  EXPECT_EQ(stopped.info.pretrain_update(), 60u);
  EXPECT_EQ(stopped.info.pretrain_target(), 100u);
  EXPECT_EQ(stopped.info.update(), 0u);
  const RunOutcome whole = RunFake(folder, experiment_);
  ASSERT_THAT(whole.status, IsOk());
  EXPECT_EQ(whole.pretrain_update, 100u);
  EXPECT_EQ(whole.update, 230u);
  EXPECT_TRUE(whole.published);
  const auto rows = Rows(Progress(folder));
  EXPECT_EQ(rows[1][3], "0");  // epoch 0: no step, no update of the run's own
  EXPECT_EQ(rows[1][4], "0");
}

TEST_F(PretrainingTest, EpochZeroHasThePretrainedState) {
  const std::string with = Folder("with"), without = Folder("without");
  ASSERT_THAT(RunFake(with, experiment_).status, IsOk());
  ASSERT_THAT(RunFake(without, FakeExperiment()).status, IsOk());
  const auto weight = [](const std::string& folder) {
    return ReadSnapshotFile(folder + "/policies/epoch_0000.snapshot")->at(0).arrays.at(0).values.at(0);
  };
  EXPECT_NE(weight(with), weight(without));  // the fake's snapshot shows its whole state
}

TEST_F(PretrainingTest, PretrainingThatIsInterruptedOrKilledEndsInTheSameState) {
  const std::string whole = Folder("whole");
  ASSERT_THAT(RunFake(whole, experiment_).status, IsOk());
  // Checkpoints are written every 70 updates.
  for (const auto& [at, repeated] :
       std::vector<std::pair<uint64_t, uint64_t>>{{1, 0}, {69, 68}, {70, 69}, {71, 0}, {100, 29}}) {
    RunPlan stop, kill;
    stop.stop_at_pretrain_update = at;
    kill.throw_at_pretrain_update = at;
    for (const RunPlan& plan : {stop, kill}) {
      const std::string folder = Folder(absl::StrCat("cut", at, plan.throw_at_pretrain_update));
      const RunOutcome first = RunFake(folder, experiment_, plan);
      ASSERT_FALSE(first.status.ok());
      const RunOutcome second = RunFake(folder, experiment_);
      ASSERT_THAT(second.status, IsOk());
      EXPECT_EQ(second.info.repeated_updates(), plan.throw_at_pretrain_update > 0 ? repeated : 0) << "cut at " << at;
      EXPECT_EQ(FinalHash(folder), FinalHash(whole)) << "cut at " << at;
      EXPECT_EQ(Progress(folder), Progress(whole)) << "cut at " << at;
    }
  }
}

TEST_F(PretrainingTest, ARunThatWasPretrainedNoLongerNeedsItsDataset) {
  const std::string folder = Folder("run");
  ASSERT_TRUE(absl::IsCancelled(RunFake(folder, experiment_, {/*stop_at_update=*/50}).status));
  fs::remove_all(experiment_.pretrain().dataset());
  const RunOutcome outcome = RunFake(folder, experiment_);
  EXPECT_THAT(outcome.status, IsOk());
}

TEST_F(PretrainingTest, AnotherDatasetOrCountIsAnotherExperiment) {
  const std::string folder = Folder("run");
  RunPlan plan;
  plan.stop_at_pretrain_update = 60;
  ASSERT_TRUE(absl::IsCancelled(RunFake(folder, experiment_, plan).status));
  experiment_.mutable_pretrain()->set_updates(200);
  EXPECT_TRUE(absl::IsInvalidArgument(RunFake(folder, experiment_).status));
}

TEST_F(PretrainingTest, AMissingDatasetIsNamedBeforeAnythingStarts) {
  fs::remove_all(experiment_.pretrain().dataset());
  const RunOutcome outcome = RunFake(Folder("run"), experiment_);
  EXPECT_TRUE(absl::IsInvalidArgument(outcome.status)) << outcome.status;
  EXPECT_NE(outcome.status.message().find(experiment_.pretrain().dataset()), absl::string_view::npos);
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
