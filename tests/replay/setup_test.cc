#include "replay/settings.h"

#include <utility>

#include "common/config/experiment.h"
#include "gtest/gtest.h"

namespace datacom::replay {
namespace {

v1::Experiment DistinctExperiment() {
  v1::Experiment experiment;
  experiment.set_task("cartpole");
  experiment.set_algorithm("datacom");
  experiment.mutable_run()->set_env_steps(1000);
  experiment.mutable_run()->set_steps_per_epoch(20);
  experiment.mutable_run()->set_checkpoint_updates(30);
  experiment.mutable_run()->set_seed(7);
  experiment.mutable_replay()->set_capacity(100);
  experiment.mutable_replay()->set_failure_capacity(40);
  experiment.mutable_replay()->set_newest_share(0.75);
  experiment.mutable_replay()->set_min_size(10);
  experiment.mutable_replay()->set_sync(true);
  experiment.mutable_schedule()->set_updates_per_step(4);
  experiment.mutable_schedule()->set_tolerance_steps(16);
  experiment.mutable_schedule()->set_max_policy_lag(9);
  experiment.mutable_learner()->set_batch_size(8);
  experiment.mutable_learner()->set_failure_batch_size(3);
  experiment.mutable_learner()->set_discount(0.5);
  experiment.mutable_hyper()->set_delta_warmup(15);
  experiment.add_members()->set_seed(5);
  experiment.add_members()->set_seed(6);
  experiment.mutable_members(1)->mutable_hyper()->set_delta_mode("fixed");
  return ResolveExperiment(experiment);
}

TEST(Setup, TheOptionsHaveTheSettingsOfTheExperiment) {
  const v1::Experiment experiment = DistinctExperiment();
  const Options options = replay::SetUp(experiment).value().options;
  EXPECT_EQ(options.task, "cartpole");
  EXPECT_EQ(options.algorithm, "datacom");
  EXPECT_EQ(options.experiment_text, PrintExperiment(experiment));
  EXPECT_EQ(options.limits.schedule.env_steps, 1000u);
  EXPECT_EQ(options.limits.schedule.min_size, 10u);
  EXPECT_EQ(options.limits.schedule.updates_per_step, 4);
  EXPECT_EQ(options.limits.tolerance, 16u);
  EXPECT_EQ(options.limits.max_policy_lag, 9u);
  EXPECT_FALSE(options.limits.lockstep);
  EXPECT_EQ(options.layout.capacity, 100u);
  EXPECT_EQ(options.layout.failure_capacity, 40u);
  EXPECT_EQ(options.layout.newest_share, 0.75);
  EXPECT_EQ(options.layout.slack, 52u);  // 16 rows of tolerance, the 8 rows of a checkpoint twice, 20 rows of an epoch
  EXPECT_EQ(options.batch, 8u);
  EXPECT_EQ(options.failure_batch, 3u);
  EXPECT_FALSE(options.new_rows);
  EXPECT_EQ(options.discount, 0.5);
  EXPECT_EQ(options.run_seed, 7u);
  EXPECT_TRUE(options.sync);
}

TEST(Setup, ReturnsAreDiscountedOnceForEachControlStepOfADecision) {
  v1::Experiment experiment = DistinctExperiment();
  experiment.mutable_task_options()->set_action_repeat(5);
  EXPECT_EQ(replay::SetUp(experiment)->options.discount, 0.03125) << "0.5^5";
}

// draws_test.cc shows that these are enough for a resumed learner.
TEST(Setup, TheSlackHoldsTheToleranceTwoCheckpointIntervalsAndAnEpoch) {
  struct Case {
    double updates_per_step;
    uint64_t slack;
  };
  // 16 rows of tolerance, twice the 80, 20 or 5 rows of a checkpoint, 20 rows of an epoch
  for (const Case& one : {Case{0.25, 196}, Case{1, 76}, Case{4, 46}}) {
    v1::Experiment experiment = DistinctExperiment();
    experiment.mutable_run()->set_checkpoint_updates(20);
    experiment.mutable_schedule()->set_updates_per_step(one.updates_per_step);
    EXPECT_EQ(replay::SetUp(experiment)->options.layout.slack, one.slack) << one.updates_per_step;
  }
}

TEST(Setup, EveryMemberHasItsSeedAndSaysWhetherItLearnsDelta) {
  const Options options = replay::SetUp(DistinctExperiment()).value().options;
  ASSERT_EQ(options.members.size(), 2u);
  EXPECT_EQ(options.members[0].seed, 5u);
  EXPECT_TRUE(options.members[0].episode_rows);
  EXPECT_EQ(options.members[0].delta_warmup, 15u);
  EXPECT_EQ(options.members[1].seed, 6u);
  EXPECT_FALSE(options.members[1].episode_rows);
}

// CartPole has 1,000 rows an episode.
TEST(Setup, ADeltaThatFollowsEpisodesTakesThemAfterAWarmupOfAtMostTwentyOfThem) {
  v1::Experiment experiment = DistinctExperiment();
  experiment.mutable_members(1)->mutable_hyper()->set_delta_mode("peak");
  const std::pair<uint64_t, uint64_t> cases[] = {{15, 15}, {20000, 20000}, {50000, 20000}};
  for (const auto& [given, wanted] : cases) {
    experiment.mutable_hyper()->set_delta_warmup(given);
    const Options options = replay::SetUp(experiment).value().options;
    EXPECT_TRUE(options.members[1].episode_rows);
    EXPECT_EQ(options.members[1].delta_warmup, wanted) << given;
    EXPECT_EQ(options.members[0].delta_warmup, given) << "this member learns delta";
  }
  experiment.mutable_task_options()->set_horizon(100);
  EXPECT_EQ(replay::SetUp(experiment)->options.members[1].delta_warmup, 2000u);
}

TEST(Setup, ARunInLockstepAllowsNoPolicyLag) {
  v1::Experiment experiment = DistinctExperiment();
  experiment.mutable_run()->set_lockstep(true);
  const Options options = replay::SetUp(ResolveExperiment(experiment)).value().options;
  EXPECT_TRUE(options.limits.lockstep);
  EXPECT_EQ(options.limits.tolerance, 1u);
  EXPECT_EQ(options.limits.max_policy_lag, 0u);
}

TEST(Setup, DrawsOfAnOnPolicyAlgorithmHoldNewRows) {
  v1::Experiment experiment;
  experiment.set_task("cartpole");
  experiment.set_algorithm("rcpo");
  EXPECT_TRUE(replay::SetUp(ResolveExperiment(experiment))->options.new_rows);
  experiment.set_algorithm("sac");
  EXPECT_FALSE(replay::SetUp(ResolveExperiment(experiment))->options.new_rows);
  EXPECT_FALSE(replay::SetUp(ResolveExperiment(experiment))->options.members[0].episode_rows);
}

}  // namespace
}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
