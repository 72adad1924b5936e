#include "deploy/cli/progress.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/rate_meter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace datacom::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

v1::ReplayInfo Replay(uint64_t first, uint64_t second) {
  v1::ReplayInfo info;
  for (const uint64_t inserted : {first, second}) {
    v1::MemberInfo* member = info.add_members();
    member->set_member(info.members_size() - 1);
    member->set_inserted(inserted);
    member->set_env_steps(20000);
    member->set_episodes(inserted / 500);
  }
  return info;
}

v1::LearnerInfo Learner() {
  v1::LearnerInfo info;
  info.set_phase("learning");
  info.set_update(8000);
  info.set_target_update(18000);
  for (uint64_t i = 0; i < 2; ++i) {
    v1::MemberProgress* member = info.add_members();
    member->set_member(i);
    member->set_seed(10 + i);
    member->set_status(i == 1 ? "diverged" : "ok");
    member->set_train_return(100 + 10.0 * i);
    member->set_delta(5.5);
    member->set_delta_steps(1234);
  }
  return info;
}

TEST(Progress, MergesTheAnswersOfReplayAndLearner) {
  const ProgressView view = MakeProgress(Replay(10000, 9000), Learner());
  ASSERT_EQ(view.learner.members_size(), 2);
  EXPECT_EQ(view.learner.members(1).seed(), 11u);
  EXPECT_EQ(view.learner.members(1).env_steps(), 9000u);
  EXPECT_EQ(view.goal_steps, 20000u);
  EXPECT_EQ(view.learner.phase(), "learning");
}

TEST(Progress, ShowsTheReplaysAnswerWithoutTheLearners) {
  const ProgressView view = MakeProgress(Replay(10000, 9000), std::nullopt);
  ASSERT_EQ(view.learner.members_size(), 2);
  EXPECT_EQ(view.learner.members(0).env_steps(), 10000u);
  EXPECT_EQ(view.learner.phase(), "starting");
}

TEST(Progress, BeforeTheLearnerAnswersOnlyTheReplaysFiguresAreShown) {
  const ProgressView view = MakeProgress(Replay(10000, 9000), std::nullopt);
  EXPECT_EQ(RenderLine(view), "00:00   45.0 %  9,000 steps/member  0 steps/s  0 updates/s  ETA --:--  starting");
  EXPECT_THAT(RenderTable(view, 200, 16),
              AllOf(HasSubstr(" 45.0 %"), HasSubstr("starting: 0 steps/s, 0 updates/s, 0 actors\n"),
                    HasSubstr("\n     1         -       9,000         -  ")));
}

TEST(Progress, WhatAServiceAnswersDoesNotSteerTheTerminal) {
  v1::LearnerInfo learner = Learner();
  learner.set_waiting_for("Godot\x1b[2J");
  learner.mutable_members(0)->set_status("\x1b[1A");
  EXPECT_THAT(RenderTable(MakeProgress(Replay(10000, 9000), learner), 200, 16),
              AllOf(Not(HasSubstr("\x1b")), HasSubstr("waiting: Godot\\x1b[2J\n"), HasSubstr("\\x1b[1A")));
}

TEST(Progress, BeforeAnyAnswerNoFigureIsShown) {
  ProgressView view = MakeProgress(std::nullopt, std::nullopt);
  view.elapsed_seconds = 12;
  EXPECT_EQ(RenderLine(view), "00:12  starting");
  EXPECT_THAT(RenderTable(view, 200, 16), AllOf(Not(HasSubstr("%")), HasSubstr("starting: 0 actors\n")));
}

TEST(Progress, IsTheLesserOfSlowestMemberAndUpdates) {
  EXPECT_DOUBLE_EQ(FractionDone(MakeProgress(Replay(10000, 4000), Learner())), 0.2);
  EXPECT_DOUBLE_EQ(FractionDone(MakeProgress(Replay(20000, 20000), Learner())), 8000.0 / 18000);
  EXPECT_DOUBLE_EQ(FractionDone(ProgressView()), 0);
}

TEST(Progress, OfAnOnPolicyRunTheNumberOfUpdatesIsShownAndItsWaitingIsNot) {
  v1::LearnerInfo learner = Learner();
  learner.set_update(12);
  learner.set_target_update(40);
  learner.set_waiting_for("learner waits for rows: member 0 has 10 of 500 rows");
  const ProgressView view = MakeProgress(Replay(10000, 9000), learner);
  EXPECT_THAT(RenderLine(view), AllOf(HasSubstr("  0 steps/s  update 12 of 40  ETA"), Not(HasSubstr("waiting")),
                                      Not(HasSubstr("updates/s"))));
  EXPECT_THAT(RenderTable(view, 200, 16),
              AllOf(HasSubstr("learning: 0 steps/s, update 12 of 40, 0 actors\n"), Not(HasSubstr("waiting"))));
  learner.set_waiting_for("actor-0 does not answer");
  EXPECT_THAT(RenderLine(MakeProgress(Replay(10000, 9000), learner)), HasSubstr("waiting: actor-0 does not answer"));
}

TEST(Progress, ALearnerThatWaitsForRowsWhileTheRunMovesDoesNotWait) {
  const std::string normal = "learner waits for rows: member 0 has 34725 of 34726 rows";
  const std::string actor = "actor-1 waits for credit of member 1: the learner is 64 updates behind";
  v1::ReplayInfo replay = Replay(10000, 9000);
  replay.add_waits(normal);
  replay.add_waits(actor);
  replay.set_rows_per_second(250);
  const ProgressView moving = MakeProgress(replay, Learner());
  EXPECT_THAT(RenderTable(moving, 200, 16), Not(HasSubstr("waiting")));
  EXPECT_EQ(ProgressJson(moving)["waiting"], "");
  EXPECT_THAT(OtherWaits(moving, replay), testing::ElementsAre(actor));
  EXPECT_THAT(RenderTable(MakeProgress(replay, std::nullopt), 200, 16), Not(HasSubstr("waiting")));
  replay.set_rows_per_second(0);
  const ProgressView still = MakeProgress(replay, Learner());
  EXPECT_THAT(RenderTable(still, 200, 16), HasSubstr("waiting: " + normal));
  EXPECT_EQ(ProgressJson(still)["waiting"], normal);
  EXPECT_THAT(OtherWaits(still, replay), testing::ElementsAre(actor)) << "the table has the first";
  v1::LearnerInfo told = Learner();
  told.set_waiting_for("learner waits for rows: member 0 has 34720 of 34726 rows");
  EXPECT_THAT(OtherWaits(MakeProgress(replay, told), replay), testing::ElementsAre(actor)) << "a second later";
}

TEST(Progress, TheLineSaysOnceThatTheLearnerWaitsOrPreTrains) {
  v1::LearnerInfo learner = Learner();
  learner.set_phase("waiting");
  learner.set_waiting_for("learner waits for rows: member 0 has 10 of 500 rows");
  v1::ReplayInfo replay = Replay(10000, 9000);
  EXPECT_THAT(RenderLine(MakeProgress(replay, learner)),
              HasSubstr("  delta 5.5000  1 diverged  waiting: learner waits for rows: member 0 has 10 of 500 rows"));
  replay.set_rows_per_second(250);  // the run moves
  const ProgressView moving = MakeProgress(replay, learner);
  EXPECT_THAT(RenderLine(moving), AllOf(HasSubstr("  learning  1 diverged"), Not(HasSubstr("waiting"))));
  EXPECT_THAT(RenderTable(moving, 200, 16), HasSubstr("\nlearning: 250 steps/s"));
  EXPECT_EQ(ProgressJson(moving)["state"], "learning");
  learner.set_update(0);
  EXPECT_THAT(RenderLine(MakeProgress(replay, learner)), HasSubstr("  waiting: learner waits for rows: member 0"))
      << "it says why there is no update yet";
  learner.set_phase("pre-training");
  learner.set_waiting_for("");
  learner.set_pretrain_target(5000);
  EXPECT_THAT(RenderLine(MakeProgress(replay, learner)),
              HasSubstr("  delta 5.5000  pre-training update 0 of 5,000  1 diverged"));
}

TEST(Progress, TheEtaIsTheLaterOfStepsAndUpdates) {
  ProgressView view = MakeProgress(Replay(10000, 10000), Learner());
  EXPECT_FALSE(EtaSeconds(view).has_value());
  view.steps_per_second = 2000;  // for two members: 10,000 steps each take 10 s
  EXPECT_DOUBLE_EQ(*EtaSeconds(view), 10);
  view.learner.set_updates_per_second(500);  // 10,000 updates take 20 s
  EXPECT_DOUBLE_EQ(*EtaSeconds(view), 20);
  ProgressView all_rows = MakeProgress(Replay(20000, 20000), Learner());
  all_rows.steps_per_second = 2000;  // of the seconds before
  EXPECT_FALSE(EtaSeconds(all_rows).has_value()) << "an update of ppo_lag takes the rows of an epoch";
}

TEST(Progress, FormatsDurationsAndCounts) {
  EXPECT_EQ(FormatDuration(0), "00:00");
  EXPECT_EQ(FormatDuration(59.6), "01:00");
  EXPECT_EQ(FormatDuration(3723), "1:02:03");
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
}

TEST(Progress, TheTableHasOneLinePerMemberAndFitsTheTerminal) {
  v1::ReplayInfo replay = Replay(10000, 9000);
  replay.set_rows_per_second(250);
  ProgressView view = MakeProgress(replay, Learner());
  view.title = "cartpole/datacom";
  view.learner.set_waiting_for("actor-0 waits for credit of member 1: the learner is 64 updates behind");
  const std::string wide = RenderTable(view, 200, 16);
  EXPECT_THAT(wide, AllOf(HasSubstr("cartpole/datacom"), HasSubstr("10,000"), HasSubstr("diverged"),
                          HasSubstr("waiting: actor-0"), HasSubstr("update 8,000 of 18,000"), HasSubstr("250 steps/s"),
                          HasSubstr("\n     1  diverged       9,000 "), HasSubstr("   0.0000     11       1,234\n")));
  const std::vector<std::string> narrow = absl::StrSplit(RenderTable(view, 50, 16), '\n');
  for (const std::string& line : narrow) {
    EXPECT_LE(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }), 50) << line;
  }
  EXPECT_THAT(RenderTable(view, 200, 1), HasSubstr("and 1 more member\n"));
  // Columns are left out as a whole, the least important ones first.
  EXPECT_THAT(RenderTable(view, 40, 16), AllOf(HasSubstr("\nmember     state       steps    eval J\n"),
                                               HasSubstr("\n     1  diverged       9,000     0.000\n")));
  EXPECT_THAT(RenderTable(view, 10, 16), HasSubstr("\nmember\n     0\n     1\n"));
  // Without a width nothing is left out, and what is wrapped is not cut.
  EXPECT_THAT(RenderTable(view, 0, 16), HasSubstr("delta steps\n"));
  EXPECT_THAT(RenderTable(view, 50, 16, /*wrap=*/true),
              AllOf(HasSubstr("waiting: actor-0"), HasSubstr("updates behind\n")));
}

TEST(Progress, ProgramsGetTheSameFactsAndNullForWhatIsNotKnown) {
  v1::LearnerInfo learner = Learner();
  learner.mutable_members(0)->set_alpha(std::nan(""));
  const nlohmann::json json = ProgressJson(MakeProgress(Replay(10000, 9000), learner));
  EXPECT_EQ(json["state"], "learning");
  EXPECT_EQ(json["env_steps"], 9000);
  EXPECT_EQ(json["eta_seconds"], nullptr);
  EXPECT_EQ(json["members"][1]["status"], "diverged");
  EXPECT_EQ(json["members"][0]["seed"], 10);
  EXPECT_EQ(json["members"][0]["alpha"], nullptr);
  EXPECT_EQ(json["members"][0]["train_return"], 100);
  EXPECT_EQ(ProgressJson(MakeProgress(Replay(10, 20), std::nullopt))["members"],
            nlohmann::json::parse(R"([{"member": 0, "env_steps": 10}, {"member": 1, "env_steps": 20}])"));
}

TEST(Progress, RepeatedWorkIsShownWithItsShareOnceTheLearnerWasRestarted) {
  EXPECT_EQ(RepeatedWork(0, 8000, 1), "");
  EXPECT_EQ(RepeatedWork(1, 999, 2), "work repeated: 1 update (0.1 %) in 1 restart of the learner\n");
  EXPECT_EQ(RepeatedWork(2000, 8000, 4), "work repeated: 2,000 updates (20.0 %) in 3 restarts of the learner\n");
  EXPECT_EQ(RepeatedWork(0, 0, 3), "work repeated: 0 updates (0.0 %) in 2 restarts of the learner\n");
  v1::LearnerInfo learner = Learner();
  EXPECT_THAT(RenderTable(MakeProgress(Replay(10000, 9000), learner), 200, 16), Not(HasSubstr("repeated")));
  learner.set_repeated_updates(2000);
  EXPECT_THAT(RenderTable(MakeProgress(Replay(10000, 9000), learner), 200, 16), HasSubstr(", 2,000 repeated\n"));
}

TEST(Progress, AnAlgorithmWithoutDeltaShowsNone) {
  ProgressView view = MakeProgress(Replay(10000, 9000), Learner());
  EXPECT_THAT(RenderLine(view), HasSubstr("delta 5.5000"));
  view.learns_delta = false;
  EXPECT_THAT(RenderLine(view), AllOf(Not(HasSubstr("delta")), HasSubstr("return 105.00"), HasSubstr("1 diverged")));
}

TEST(Progress, ShowsARunawayCritic) {
  ProgressView view = MakeProgress(Replay(10000, 9000), Learner());
  EXPECT_THAT(RenderLine(view), Not(HasSubstr("runaway")));
  view.learner.mutable_members(0)->set_status("runaway");
  EXPECT_THAT(RenderLine(view), AllOf(HasSubstr("1 diverged"), HasSubstr("1 runaway")));
  EXPECT_THAT(RenderTable(view, 200, 16), HasSubstr("\n     0   runaway  "));
}

TEST(Progress, AnAlgorithmWithoutATemperatureShowsNone) {
  ProgressView view = MakeProgress(Replay(10000, 9000), Learner());
  for (v1::MemberProgress& member : *view.learner.mutable_members()) member.set_alpha(std::nan(""));
  EXPECT_THAT(RenderTable(view, 200, 16),
              AllOf(HasSubstr("      0        -     10       1,234\n"), Not(HasSubstr("nan"))));
}

TEST(Progress, ShowsPreTrainingAndIncludesItInTheEta) {
  ProgressView view;
  view.learner.set_target_update(10000);
  view.learner.set_pretrain_target(5000);
  view.learner.set_pretrain_update(1200);
  view.learner.set_updates_per_second(100);
  EXPECT_THAT(RenderLine(view), HasSubstr("pre-training update 1,200 of 5,000"));
  EXPECT_THAT(RenderTable(view, 200, 1), HasSubstr("pre-training update 1,200 of 5,000"));
  EXPECT_DOUBLE_EQ(*EtaSeconds(view), 138);
  view.learner.set_pretrain_update(5000);
  EXPECT_THAT(RenderLine(view), Not(HasSubstr("pre-training")));
}

TEST(RateMeter, MeasuresOverItsWindowAndRestartsWhenTheCountFalls) {
  ManualClock clock;
  RateMeter meter(&clock, 10);
  EXPECT_EQ(meter.rate(), 0);
  for (int second = 0; second <= 100; ++second) {
    meter.Add(second <= 50 ? 0 : 7.0 * (second - 50));
    clock.Advance(std::chrono::seconds(1));
  }
  EXPECT_DOUBLE_EQ(meter.rate(), 7);  // the idle first 50 s are outside the window
  meter.Add(3);
  EXPECT_EQ(meter.rate(), 0);
  clock.Advance(std::chrono::seconds(2));
  meter.Add(13);
  EXPECT_DOUBLE_EQ(meter.rate(), 5);
}

TEST(LiveBlock, ErasesExactlyItsLines) {
  LiveBlock block;
  EXPECT_EQ(block.Redraw("a\nb\n"), "\x1b[Ja\nb\n");
  EXPECT_THAT(block.Redraw("c\n"), StartsWith("\x1b[2A\x1b[J"));
  EXPECT_EQ(block.PrintAbove("said\n"), "\x1b[1A\x1b[Jsaid\n");
  EXPECT_EQ(block.Redraw("d\n"), "\x1b[Jd\n");
}

}  // namespace
}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
