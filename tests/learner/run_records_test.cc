// The rule that decides whether a critic runs away, and what a run records about its critics and abandoned episodes.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/member_watch.h"
#include "learner/run_records.h"
#include "tests/testing/fake_learner_run.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::learner {
namespace {

using datacom::testing::IsOk;
using ::testing::ElementsAre;

// A watch after ten epochs with almost no loss, which the rule leaves out, and then these losses.
CriticWatch After(const std::vector<double>& losses) {
  CriticWatch watch;
  for (int epoch = 0; epoch < 10; ++epoch) watch.Add(1e-9);
  for (const double loss : losses) watch.Add(loss);
  return watch;
}

TEST(CriticWatchTest, ACriticRunsAwayAboveTenTimesTheSmallestLossOfTheTenEpochsBefore) {
  const std::vector<double> calm{9, 8, 7, 6, 2, 3, 4, 5, 6, 7};
  std::vector<double> tenfold = calm, more = calm;
  tenfold.push_back(20);
  more.push_back(20.1);
  EXPECT_FALSE(After(calm).runaway());
  EXPECT_FALSE(After(tenfold).runaway());
  EXPECT_TRUE(After(more).runaway());
  EXPECT_EQ(After(more).before(), 2);
  EXPECT_EQ(After(more).now(), 20.1);
}

TEST(CriticWatchTest, EpochTwentyOneOfLearningIsTheFirstThatIsJudged) {
  CriticWatch watch;
  double loss = 1e-9;
  for (int epoch = 0; epoch < 20; ++epoch, loss *= 20) {
    watch.Add(std::nan(""));  // nothing was learned
    watch.Add(loss);
    EXPECT_FALSE(watch.runaway()) << epoch;
  }
  watch.Add(loss);
  EXPECT_TRUE(watch.runaway());
}

TEST(CriticWatchTest, OnlyTheTenEpochsBeforeCountSoALossThatStaysHighBecomesTheReference) {
  std::vector<double> losses{1, 5, 5, 5, 5, 5, 5, 5, 5, 5, 20};
  EXPECT_TRUE(After(losses).runaway());
  losses.push_back(20);  // ten epochs before it: 5 and 20
  EXPECT_FALSE(After(losses).runaway());
  losses.push_back(51);
  EXPECT_TRUE(After(losses).runaway());
}

TEST(CriticWatchTest, AnInfiniteLossRunsAwayAndTheHistorySurvivesARestart) {
  std::vector<double> losses(10, 1.0);
  losses.push_back(HUGE_VAL);
  EXPECT_TRUE(After(losses).runaway());
  const CriticWatch whole = After({5, 4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1, 8}),
                    again(whole.losses());
  EXPECT_EQ(again.losses(), (std::vector<double>{4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1, 8}));
}

class RunRecordsTest : public ::testing::Test {
 protected:
  std::string Folder(const std::string& name) const { return temporary_.path() + "/" + name; }

 private:
  const datacom::testing::TemporaryFolder temporary_;
};

// progress.csv without wall_seconds.
std::vector<std::vector<std::string>> Rows(const std::string& folder) {
  std::vector<std::vector<std::string>> rows;
  for (absl::string_view line : absl::StrSplit(*ReadFile(folder + "/progress.csv"), '\n', absl::SkipEmpty())) {
    rows.push_back(absl::StrSplit(line, ','));
    rows.back()[5].clear();
  }
  return rows;
}

size_t Column(const std::vector<std::vector<std::string>>& rows, const std::string& name) {
  return std::find(rows[0].begin(), rows[0].end(), name) - rows[0].begin();
}

TEST_F(RunRecordsTest, RecordsHaveAStatisticOfOneAlgorithmOnlyInItsRuns) {
  for (const char* algorithm : {"sac", "toy"}) {
    RunRecords::Options options;
    options.run_dir = Folder(algorithm);
    options.algorithm = algorithm;
    options.seeds = {7};
    const auto records = RunRecords::Open(options, {});
    ASSERT_THAT(records, IsOk());
    v1::EpochRecord record;
    record.add_members()->set_toy_prediction(0.25);
    ASSERT_THAT((*records)->AppendEpoch(record), IsOk());
    const auto rows = Rows(options.run_dir);
    const size_t column = Column(rows, "toy_prediction");
    const std::string cell = column < rows[0].size() ? rows[1][column] : "no column";
    EXPECT_EQ(cell, algorithm == std::string("toy") ? "0.25" : "no column");
  }
}

TEST_F(RunRecordsTest, RecordsHaveTheStatisticsOfCriticsAndGradients) {
  const std::string folder = Folder("run");
  ASSERT_THAT(RunFake(folder, FakeExperiment()).status, IsOk());
  const auto rows = Rows(folder);
  const auto cell = [&rows](size_t row, const std::string& name) { return rows[row][Column(rows, name)]; };
  EXPECT_EQ(cell(3, "q_mean"), "80.5");  // member 0 of the epoch that ended at update 80
  EXPECT_EQ(cell(4, "q_min"), "-2.5");
  EXPECT_EQ(cell(4, "q_gap"), "0.25");
  EXPECT_EQ(cell(4, "actor_gradient_norm"), "3");
  EXPECT_EQ(cell(4, "critic_gradient_norm"), "4");
  EXPECT_EQ(cell(4, "constraint_gradient_norm"), "");
}

TEST_F(RunRecordsTest, TheCriticOfAnOnPolicyAlgorithmIsNotJudged) {
  v1::Experiment experiment = FakeExperiment();
  experiment.mutable_run()->set_steps_per_epoch(10);
  RunPlan plan;
  plan.critic_loss = [](size_t, uint64_t updates) { return updates > 201 ? 40.0 : 1.0; };
  for (const bool on_policy : {false, true}) {
    plan.on_policy = on_policy;
    const std::string folder = Folder(on_policy ? "on_policy" : "replay");
    const RunOutcome outcome = RunFake(folder, experiment, plan);
    ASSERT_THAT(outcome.status, IsOk());
    EXPECT_EQ(outcome.info.members(0).status(), on_policy ? "ok" : "runaway");
    EXPECT_EQ(outcome.runaway[0], on_policy ? 0 : 1);
    const auto rows = Rows(folder);
    const size_t column = Column(rows, "status");
    size_t runaways = 0;
    for (const auto& row : rows) runaways += row[column] == "runaway";
    EXPECT_EQ(runaways, on_policy ? 0u : 6u) << "two members, three epochs";
  }
}

TEST_F(RunRecordsTest, ARunWithMoreThanATenthOfItsEpisodesAbandonedIsNotOkAndSaysWhy) {
  for (const uint64_t every : {80, 120}) {  // of 25 episodes 3 more are abandoned, or 2
    const std::string folder = Folder(absl::StrCat("run", every));
    RunPlan plan;
    plan.abandoned_every = every;
    plan.throw_at_update = 150;
    RunFake(folder, FakeExperiment(), plan);
    plan.throw_at_update = 0;  // goes on from a checkpoint
    const RunOutcome outcome = RunFake(folder, FakeExperiment(), plan);
    ASSERT_THAT(outcome.status, IsOk());
    EXPECT_THAT(outcome.episodes, IsOk());
    EXPECT_EQ(outcome.info.members(0).status(), every == 80 ? "abandoned" : "ok");
    EXPECT_EQ(outcome.info.members(1).status(), "ok");
    const auto rows = Rows(folder);
    std::vector<std::string> found;
    for (size_t i = 1; i + 1 < rows.size(); i += 2) {  // of both members
      const auto cell = [&](size_t row, const char* name) { return rows[row][Column(rows, name)]; };
      found.push_back(
          absl::StrCat(cell(i, "train_abandoned"), " ", cell(i, "status"), " ", cell(i, "abandoned_reason")));
      EXPECT_EQ(cell(i + 1, "train_abandoned"), "0");
      EXPECT_EQ(cell(i + 1, "abandoned_reason"), "");
    }
    if (every == 80) {  // 1 of 11, 2 of 22, 3 of 28
      EXPECT_THAT(found, ElementsAre("0 ok ", "1 ok of row 80; which broke", "1 ok of row 80; which broke",
                                     "1 abandoned of row 80; which broke"));
    } else {
      EXPECT_THAT(found, ElementsAre("0 ok ", "0 ok ", "1 ok of row 120; which broke", "1 ok of row 120; which broke"));
    }
  }
}

v1::MemberEpoch Judged(double alpha, double infeasible_share) {
  v1::MemberEpoch stats;
  stats.set_critic_loss(1);
  stats.set_alpha(alpha);
  stats.set_infeasible_share(infeasible_share);
  return stats;
}

TEST(MemberWatch, ACriticRunsAwayWithATemperatureAboveATenthAndThirtyTimesTheSmallestBefore) {
  MemberWatch watch;
  EXPECT_EQ(watch.EndEpoch(Judged(0.5, 0), 100, false), "") << "the first epoch";
  EXPECT_EQ(watch.EndEpoch(Judged(0.01, 0), 100, false), "");
  EXPECT_EQ(watch.EndEpoch(Judged(0.3, 0), 100, false), "");
  EXPECT_FALSE(watch.runaway());
  EXPECT_EQ(watch.EndEpoch(Judged(0.31, 0), 100, false), "the critic runs away: alpha is 0.31, it was 0.01");
  EXPECT_TRUE(watch.runaway());
  EXPECT_EQ(watch.EndEpoch(Judged(0.32, 0), 100, false), "") << "it is known";
  EXPECT_EQ(watch.EndEpoch(Judged(0.001, 0), 100, true), "") << "cut short: not kept";
  EXPECT_FALSE(watch.runaway());
  EXPECT_EQ(watch.EndEpoch(Judged(0.11, 0), 100, false), "");
  EXPECT_FALSE(watch.runaway());
  EXPECT_EQ(watch.EndEpoch(Judged(std::nan(""), 0), 100, false), "") << "a method without a temperature";
}

TEST(MemberWatch, AShieldIsLockedAfterTenThousandRowsOfMostlyInfeasibleEpochs) {
  MemberWatch watch;
  EXPECT_EQ(watch.EndEpoch(Judged(1, 0.51), 9999, false), "");
  EXPECT_EQ(watch.EndEpoch(Judged(1, 0.5), 9999, false), "") << "begins again";
  EXPECT_EQ(watch.EndEpoch(Judged(1, 0.51), 9999, false), "");
  EXPECT_FALSE(watch.locked());
  v1::MemberTotals saved;
  watch.Save(&saved);
  for (MemberWatch each : {watch, MemberWatch(saved, /*on_policy=*/false)}) {
    EXPECT_EQ(each.EndEpoch(Judged(1, 0.74), 1, false),
              "the shield is locked: the learned constraint is above 0 in 74 % of the states");
    EXPECT_TRUE(each.locked());
    each.Save(&saved);
    EXPECT_TRUE(MemberWatch(saved, false).locked());
  }
}

// Epochs of 5,000 rows. The share is above a half from update 10,001 to 25,000: the epochs 3, 4 and 5.
TEST_F(RunRecordsTest, AMemberIsLockedAfterTenThousandInfeasibleRowsAlsoAfterAnInterruption) {
  v1::Experiment experiment = FakeExperiment();
  experiment.mutable_run()->set_env_steps(30000);
  experiment.mutable_run()->set_steps_per_epoch(5000);
  experiment.mutable_run()->set_checkpoint_updates(2000);
  RunPlan plan;
  plan.infeasible_share = [](size_t member, uint64_t updates) {
    return member == 1 && updates > 10000 && updates <= 25000 ? 0.6 : 0.4;
  };
  for (const uint64_t interrupted : {0, 17001}) {
    const std::string folder = Folder(absl::StrCat("run", interrupted));
    plan.throw_at_update = interrupted;
    if (interrupted > 0) RunFake(folder, experiment, plan);
    plan.throw_at_update = 0;
    ASSERT_THAT(RunFake(folder, experiment, plan).status, IsOk());
    const auto rows = Rows(folder);
    std::vector<std::string> states, shares;
    for (size_t i = 1; i + 1 < rows.size(); i += 2) {  // of both members
      EXPECT_EQ(rows[i][Column(rows, "status")], "ok");
      states.push_back(rows[i + 1][Column(rows, "status")]);
      shares.push_back(rows[i + 1][Column(rows, "infeasible_share")]);
    }
    EXPECT_THAT(shares, ElementsAre("", "0.4", "0.4", "0.6", "0.6", "0.6", "0.4"));
    EXPECT_THAT(states, ElementsAre("ok", "ok", "ok", "ok", "locked", "locked", "ok"));
  }
}

TEST_F(RunRecordsTest, ARunWithoutACompleteEpisodeIsAnError) {
  RunPlan plan;
  plan.episode_length = 1000;
  plan.abandoned_every = 50;
  const RunOutcome outcome = RunFake(Folder("run"), FakeExperiment(), plan);
  ASSERT_THAT(outcome.status, IsOk());
  EXPECT_EQ(outcome.episodes, absl::InvalidArgumentError(
                                  "all 5 training episodes of member 0 were abandoned, the first one because of row "
                                  "50, which broke"));
}

// 25 epochs of 10 steps, the first two without an update. The loss of member 1's critic is 1 up to update 201, then 40.
TEST_F(RunRecordsTest, RecordsInfoAndMetricsReportACriticThatRunsAwayAlsoAfterAnInterruption) {
  v1::Experiment experiment = FakeExperiment();
  experiment.mutable_run()->set_steps_per_epoch(10);
  RunPlan plan;
  plan.critic_loss = [](size_t member, uint64_t updates) { return member == 1 && updates > 201 ? 40.0 : 1.0; };
  const std::string whole = Folder("whole");
  const RunOutcome outcome = RunFake(whole, experiment, plan);
  ASSERT_THAT(outcome.status, IsOk());
  std::vector<std::string> status;
  const auto rows = Rows(whole);
  const size_t column = Column(rows, "status");
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i][0] == "0") {
      EXPECT_EQ(rows[i][column], "ok");
    } else {
      status.push_back(rows[i][column] + " " + rows[i][4]);  // updates
    }
  }
  std::vector<std::string> expected{"ok 0", "ok 0", "ok 0"};
  for (int updates = 10; updates <= 200; updates += 10) expected.push_back(absl::StrCat("ok ", updates));
  for (const char* late : {"runaway 210", "runaway 220", "runaway 230"}) expected.emplace_back(late);
  EXPECT_EQ(status, expected);
  EXPECT_EQ(outcome.runaway, (std::vector<double>{0, 1}));
  EXPECT_EQ(outcome.info.members(0).status(), "ok");
  EXPECT_EQ(outcome.info.members(1).status(), "runaway");
  for (const uint64_t at : {195, 211}) {
    const std::string folder = Folder(absl::StrCat("cut", at));
    plan.stop_at_update = at;
    const RunOutcome first = RunFake(folder, experiment, plan);
    EXPECT_TRUE(absl::IsCancelled(first.status)) << first.status;
    EXPECT_EQ(first.info.members(1).status(), at > 210 ? "runaway" : "ok");
    plan.stop_at_update = UINT64_MAX;
    ASSERT_THAT(RunFake(folder, experiment, plan).status, IsOk());
    EXPECT_EQ(Rows(folder), rows) << "stopped at update " << at;
  }
}

// An epoch that the end of a run cut short is judged, and counts once in the run that continues it.
TEST_F(RunRecordsTest, ALongerRunJudgesItsCriticsLikeOneThatWasAsLongFromTheStart) {
  v1::Experiment experiment = FakeExperiment(1), longer = experiment;
  for (v1::Experiment* one : {&experiment, &longer}) one->mutable_run()->set_steps_per_epoch(8);
  longer.mutable_run()->set_env_steps(400);
  RunPlan plan;  // high in the epoch that ends at 256 rows and was cut at 250
  plan.critic_loss = [](size_t, uint64_t updates) {
    return updates > 229 && updates < 240 ? 30.0 : 1.0 + 1e-3 * static_cast<double>(updates);
  };
  const std::string whole = Folder("whole"), folder = Folder("longer");
  ASSERT_THAT(RunFake(whole, longer, plan).status, IsOk());
  ASSERT_THAT(RunFake(folder, experiment, plan).status, IsOk());
  ASSERT_THAT(RunFake(folder, longer, plan).status, IsOk());
  std::vector<std::string> notes;
  const auto history = [&notes](const std::string& of) {
    const auto totals = CheckpointStore(of + "/checkpoints").LoadNewest(&notes)->learner.totals(0);
    return std::vector<double>(totals.critic_losses().begin(), totals.critic_losses().end());
  };
  EXPECT_EQ(history(folder), history(whole));
  EXPECT_EQ(history(whole).size(), 21u);
  std::vector<std::vector<std::string>> rows = Rows(folder);
  const size_t steps = Column(rows, "env_steps"), status = Column(rows, "status");
  const auto cut = std::find_if(rows.begin(), rows.end(), [steps](const auto& row) { return row[steps] == "250"; });
  ASSERT_NE(cut, rows.end());
  EXPECT_EQ((*cut)[status], "runaway");
  rows.erase(cut);
  EXPECT_EQ(rows, Rows(whole));
}

// Epochs of 5,000 rows. The share is above a half in the third, which was cut at 12,500 rows, and the fourth.
TEST_F(RunRecordsTest, ALongerRunCountsAllRowsOfTheEpochThatItContinuesForALockedShield) {
  v1::Experiment experiment = FakeExperiment(1);
  experiment.mutable_run()->set_steps_per_epoch(5000);
  experiment.mutable_run()->set_checkpoint_updates(2000);
  RunPlan plan;
  plan.infeasible_share = [](size_t, uint64_t updates) { return updates > 10000 ? 0.6 : 0.4; };
  const std::string folder = Folder("run");
  for (const uint64_t steps : {12500, 20000}) {
    experiment.mutable_run()->set_env_steps(steps);
    ASSERT_THAT(RunFake(folder, experiment, plan).status, IsOk());
  }
  const auto rows = Rows(folder);
  const size_t steps = Column(rows, "env_steps"), status = Column(rows, "status");
  std::vector<std::string> states;
  for (size_t i = 1; i < rows.size(); ++i) states.push_back(rows[i][steps] + " " + rows[i][status]);
  EXPECT_THAT(states, ElementsAre("0 ok", "5000 ok", "10000 ok", "12500 ok", "15000 ok", "20000 locked"));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
