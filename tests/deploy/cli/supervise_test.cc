#include "deploy/cli/supervise.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace datacom::cli {
namespace {

using Action = RestartPolicy::Action;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RestartPolicy, TheFirstRestartIsImmediate) {
  ManualClock clock;
  RestartPolicy policy(&clock);
  const RestartPolicy::Decision decision = policy.OnExit("actor-0", Role::kActor, 137);
  EXPECT_EQ(decision.action, Action::kRestart);
  EXPECT_EQ(decision.at, clock.Now());
  EXPECT_EQ(decision.reason, "killed by signal 9");
  EXPECT_EQ(policy.restarts(), 1);
}

TEST(RestartPolicy, WaitsTwiceAsLongBeforeEachFurtherRestart) {
  ManualClock clock;
  RestartPolicy policy(&clock);
  policy.OnExit("replay", Role::kReplay, 1);
  for (const int wait : {100, 200, 400, 800}) {
    EXPECT_EQ(policy.OnExit("replay", Role::kReplay, 1).at - clock.Now(), milliseconds(wait));
  }
}

TEST(RestartPolicy, GivesUpAtTheSixthExitWithinAMinute) {
  ManualClock clock;
  RestartPolicy policy(&clock);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(policy.OnExit("learner", Role::kLearner, 1).action, Action::kRestart) << i;
    clock.Advance(seconds(11));  // the sixth comes 55 s after the first
  }
  const RestartPolicy::Decision decision = policy.OnExit("learner", Role::kLearner, 139);
  EXPECT_EQ(decision.action, Action::kGiveUp);
  EXPECT_EQ(decision.exit_code, 1);
  EXPECT_EQ(decision.reason, "learner died again (killed by signal 11) after 5 restarts within 60 s");
}

TEST(RestartPolicy, ForgetsRestartsOlderThanAMinuteWhileTheRunGetsFurther) {
  ManualClock clock;
  RestartPolicy policy(&clock);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(policy.OnExit("actor-0", Role::kActor, 1).action, Action::kRestart) << i;
    clock.Advance(seconds(13));  // at most 5 within any minute
    if (i % 5 == 0) policy.OnProgress();
  }
  EXPECT_EQ(policy.restarts(), 100);
}

TEST(RestartPolicy, GivesUpAtTheSixthExitOfAProcessWithoutProgressHoweverSlow) {
  ManualClock clock;
  RestartPolicy policy(&clock);
  policy.OnExit("learner", Role::kLearner, 1);
  policy.OnProgress();
  for (int i = 0; i < 5; ++i) {
    clock.Advance(std::chrono::hours(1));
    EXPECT_EQ(policy.OnExit("learner", Role::kLearner, 1).action, Action::kRestart) << i;
    EXPECT_EQ(policy.OnExit("replay", Role::kReplay, 1).action, Action::kRestart) << i;
  }
  clock.Advance(std::chrono::hours(1));
  const RestartPolicy::Decision decision = policy.OnExit("learner", Role::kLearner, 137);
  EXPECT_EQ(decision.action, Action::kGiveUp);
  EXPECT_EQ(decision.exit_code, 1);
  EXPECT_EQ(decision.reason,
            "learner died again (killed by signal 9) after 5 restarts without a new row, update or evaluation between "
            "them");
}

TEST(RunProgress, CountsWhatIsNewAndNothingThatIsRepeated) {
  RunProgress progress;
  const auto observe = [&progress](uint64_t rows, uint64_t update, uint32_t evaluations_left) {
    v1::ReplayInfo replay;
    for (int i = 0; i < 2; ++i) replay.add_members()->set_inserted(rows / 2);
    v1::LearnerInfo learner;
    learner.set_update(update);
    learner.set_pretrain_update(5);
    learner.set_pending_evaluations(evaluations_left);
    progress.Observe(replay, learner);
    return progress.advances();
  };
  EXPECT_EQ(observe(0, 0, 0), 1u);
  EXPECT_EQ(observe(0, 0, 0), 1u);
  EXPECT_EQ(observe(10, 0, 0), 2u) << "rows";
  EXPECT_EQ(observe(10, 3, 2), 3u) << "an update";
  EXPECT_EQ(observe(10, 1, 0), 3u) << "a learner that resumed from an older checkpoint";
  EXPECT_EQ(observe(10, 3, 2), 3u);
  EXPECT_EQ(observe(10, 3, 1), 4u) << "an evaluation";
  EXPECT_EQ(observe(10, 3, 2), 4u);
  EXPECT_EQ(observe(10, 3, 1), 4u);
  EXPECT_EQ(observe(10, 3, 0), 5u);
  EXPECT_EQ(progress.changes(), 9u) << "all but the one without a difference";
  progress.Observe(std::nullopt, std::nullopt);
  EXPECT_EQ(progress.changes(), 9u);
  EXPECT_EQ(progress.advances(), 5u) << "no answer";
}

TEST(RunProgress, ALearnerWhoseUpdateTakesLongMovesButDoesNotAdvance) {
  RunProgress progress;
  v1::LearnerInfo learner;
  learner.set_update(3);
  progress.Observe(std::nullopt, learner);
  const uint64_t advances = progress.advances(), changes = progress.changes();
  learner.set_signs_of_life(1);
  progress.Observe(std::nullopt, learner);
  EXPECT_EQ(progress.changes(), changes + 1);
  EXPECT_EQ(progress.advances(), advances);
}

TEST(RestartPolicy, CountsEachProcessSeparately) {
  ManualClock clock;
  RestartPolicy policy(&clock);
  for (int i = 0; i < 5; ++i) {
    for (const char* actor : {"actor-0", "actor-1", "actor-2"}) {
      EXPECT_EQ(policy.OnExit(actor, Role::kActor, 1).action, Action::kRestart);
    }
  }
}

TEST(RestartPolicy, NeverRetriesARefusedConfiguration) {
  ManualClock clock;
  RestartPolicy policy(&clock);
  for (const Role role : {Role::kReplay, Role::kLearner, Role::kActor, Role::kEvaluator}) {
    const RestartPolicy::Decision decision = policy.OnExit("x", role, 2);
    EXPECT_EQ(decision.action, Action::kGiveUp);
    EXPECT_EQ(decision.exit_code, 2);
  }
}

TEST(RestartPolicy, ExitCode0CompletesRestsOrRestartsByRole) {
  ManualClock clock;
  RestartPolicy policy(&clock);
  EXPECT_EQ(policy.OnExit("learner", Role::kLearner, 0).action, Action::kComplete);
  EXPECT_EQ(policy.OnExit("actor-0", Role::kActor, 0).action, Action::kRest);
  EXPECT_EQ(policy.OnExit("evaluator-0", Role::kEvaluator, 0).action, Action::kRest);
  EXPECT_EQ(policy.OnExit("replay", Role::kReplay, 0).action, Action::kRestart);  // a replay never finishes by itself
  EXPECT_EQ(policy.OnExit("learner", Role::kLearner, 75).action, Action::kRestart);  // stopped from outside
}

}  // namespace
}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
