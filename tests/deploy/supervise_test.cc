#include "deploy/cli/supervise.h"

#include <string>

#include "gtest/gtest.h"

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

TEST(RestartPolicy, ForgetsRestartsOlderThanAMinute) {
  ManualClock clock;
  RestartPolicy policy(&clock);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(policy.OnExit("actor-0", Role::kActor, 1).action, Action::kRestart) << i;
    clock.Advance(seconds(13));  // at most 5 within any minute
  }
  EXPECT_EQ(policy.restarts(), 100);
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
