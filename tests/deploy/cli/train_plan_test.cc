#include "deploy/cli/train_plan.h"

#include <string>

#include "common/acting/acting_rule.h"
#include "common/base/files.h"
#include "common/config/experiment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "replay/settings.h"
#include "replay/store.h"
#include "tests/testing/datasets.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::cli {
namespace {

using ::datacom::testing::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TrainOptions Typed() {
  TrainOptions options;
  options.experiment = "deploy/experiments/cartpole/datacom.textproto";
  return options;
}

v1::Experiment Members(int count, bool lockstep = false) {
  v1::Experiment experiment;
  for (int i = 0; i < count; ++i) experiment.add_members()->set_seed(i);
  experiment.mutable_run()->set_lockstep(lockstep);
  return experiment;
}

int Environments(int members, int asked, int actors = 0) {
  TrainOptions options;
  options.environments = asked;
  options.actors = actors;
  return PlanLayout(options, Members(members))->environments;
}

TEST(PlanExperiment, AppliesTheOptions) {
  TrainOptions options = Typed();
  options.seeds = "3-5";
  options.steps = 12345;
  options.overrides = {"hyper.cost_budget=7"};
  options.lockstep = true;
  const auto experiment = PlanExperiment(options);
  ASSERT_THAT(experiment, IsOk());
  EXPECT_EQ(experiment->members_size(), 3);
  EXPECT_EQ(experiment->members(2).seed(), 5u);
  EXPECT_EQ(experiment->run().env_steps(), 12345u);
  EXPECT_EQ(experiment->hyper().cost_budget(), 7);
  EXPECT_TRUE(experiment->run().lockstep());
}

TEST(PlanExperiment, RefusesAnUnknownTaskOption) {
  TrainOptions options = Typed();
  options.overrides = {"task_options.puck_region=adjusted"};
  EXPECT_THAT(std::string(PlanExperiment(options).status().message()),
              HasSubstr("task_options.puck_region: task cartpole has no such option"));
}

TEST(PlanExperiment, RefusesAnUnknownKnownConstraintAndListsTheTasks) {
  TrainOptions options;
  options.experiment = "deploy/experiments/air_hockey/datacom_known.textproto";
  EXPECT_THAT(PlanExperiment(options), IsOk());
  options.overrides = {"constraints.known=[joint_position, wall]"};
  EXPECT_THAT(std::string(PlanExperiment(options).status().message()),
              AllOf(HasSubstr("constraints.known: known constraint \"wall\": task air_hockey has the groups"),
                    HasSubstr("joint_position, end_effector, joint_velocity"), HasSubstr("velocity_3_lower")));
}

TEST(PlanExperiment, RefusesATaskInWhichTheAlgorithmCannotAct) {
  TrainOptions options;
  options.experiment = "cartpole";
  options.algorithm = "atacom_fi";
  const absl::Status status = PlanExperiment(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("acting rule atacom_fi: task cartpole has no known constraints"));
  options.experiment = "air_hockey";
  EXPECT_THAT(PlanExperiment(options), IsOk());
}

TEST(PlanExperiment, OfATaskAndAnAlgorithmHasATargetEntropyOfItsActionsAndADeltaThatFollowsTheRisk) {
  TrainOptions options;
  options.experiment = "air_hockey";
  options.algorithm = "iqn_datacom";
  const auto plan = PlanExperiment(options);
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->hyper().delta_mode(), "peak");
  EXPECT_EQ(plan->hyper().target_entropy(), -3);
  options.overrides = {"hyper.delta_mode=learned"};
  EXPECT_EQ(PlanExperiment(options)->hyper().delta_mode(), "learned");
  options.overrides = {};
  for (const char* algorithm : {"sac", "ppo_lag"}) {  // they refuse a delta_mode
    options.algorithm = algorithm;
    EXPECT_THAT(PlanExperiment(options), IsOk()) << algorithm;
  }
}

TEST(PlanExperiment, RefusesAControllerThatTheTaskDoesNotHave) {
  TrainOptions options = Typed();
  options.overrides = {"demonstrations.controller=back_off"};
  EXPECT_THAT(std::string(PlanExperiment(options).status().message()),
              HasSubstr("demonstrations.controller: task cartpole has no scripted policy \"back_off\"; it has none"));
  options.experiment = "deploy/experiments/navigation/datacom.textproto";
  EXPECT_THAT(PlanExperiment(options), IsOk());
  options.overrides = {"demonstrations.controller=park"};
  EXPECT_THAT(std::string(PlanExperiment(options).status().message()),
              HasSubstr("\"park\"; it has back_off, turn_and_drive"));
}

TEST(PlanExperiment, MakesTheDatasetsPathAbsoluteAndChecksThatItExists) {
  const datacom::testing::TemporaryFolder folder;
  const std::string dataset = folder.path() + "/dataset";
  TrainOptions options = Typed();
  options.overrides = {"pretrain.dataset=" + folder.path() + "/x/../dataset", "pretrain.updates=10"};
  EXPECT_THAT(std::string(PlanExperiment(options).status().message()), HasSubstr(dataset + ": not a dataset folder"));
  ASSERT_THAT(datacom::testing::MakeDataset(dataset, RowSchema::For(/*obs_dim=*/2, /*action_dim=*/1), {20}), IsOk());
  EXPECT_THAT(std::string(PlanExperiment(options).status().message()),
              HasSubstr("pretrain.dataset: dataset " + dataset + ": column observation is float32[2], the run needs"));
}

// The budget 5 over 100 steps is 5 / 100 (1 - 0.99^100) / 0.01 = 3.170 discounted; ln(1 + e^1) = 1.313, ln(1 + e^3.13)
// = 3.173.
TEST(PlanNotes, SayThatALearnedDeltaWillRiseAndWhatToTypeInstead) {
  TrainOptions options = Typed();
  const auto notes = [&options](const std::vector<std::string>& overrides) {
    options.overrides = {"task_options.horizon=100", "hyper.cost_budget=5"};
    options.overrides.insert(options.overrides.end(), overrides.begin(), overrides.end());
    return PlanNotes(PlanExperiment(options).value());
  };
  EXPECT_THAT(
      notes({"hyper.init_delta=1"}),
      ElementsAre("delta starts at 1.313 and is drawn towards 3.17, the discounted hyper.cost_budget=5: the constraint "
                  "loosens after the first 50000 steps; to keep its start, lower the budget: --set "
                  "hyper.cost_budget=2.07, or hold it: --set hyper.delta_mode=fixed --set hyper.init_delta=1.313; "
                  "hyper.delta_mode=peak follows the risk of episodes within the budget"));
  EXPECT_THAT(notes({"hyper.init_delta=1", "hyper.cost_budget=2.07"}), IsEmpty());
  EXPECT_THAT(notes({"hyper.init_delta=3.13"}), IsEmpty());
  EXPECT_THAT(notes({"hyper.init_delta=1", "hyper.delta_mode=peak"}), IsEmpty());
  EXPECT_THAT(notes({"hyper.init_delta=1", "hyper.delta_mode=fixed"}), IsEmpty());
  EXPECT_THAT(notes({"hyper.init_delta=1", "run.env_steps=50000"}), IsEmpty()) << "it never moves";
  options.seeds = "0-2";
  EXPECT_THAT(notes({"hyper.init_delta=1"}), SizeIs(1)) << "the members are alike";
  options.seeds.clear();
  options.experiment = "deploy/experiments/cartpole/iqn_datacom.textproto";
  EXPECT_THAT(notes({"hyper.init_delta=1"}), ElementsAre(HasSubstr("drawn towards 5,"))) << "its budget is discounted";
  options.experiment = "deploy/experiments/cartpole/sac.textproto";
  options.overrides.clear();
  EXPECT_THAT(PlanNotes(PlanExperiment(options).value()), IsEmpty());
}

TEST(PlanNotes, NameASettingThatNothingReads) {
  TrainOptions options = Typed();
  const auto notes = [&options](const std::string& experiment, const std::vector<std::string>& overrides) {
    options.experiment = "deploy/experiments/" + experiment + ".textproto";
    options.overrides = overrides;
    return PlanNotes(PlanExperiment(options).value());
  };
  EXPECT_THAT(notes("cartpole/datacom", {"hyper.delta_mode=peak", "hyper.delta_lr=0.1"}),
              ElementsAre("hyper.delta_lr=0.1 is not read: no member has hyper.delta_mode=learned"));
  EXPECT_THAT(notes("cartpole/datacom", {"hyper.delta_lr=0.1", "network.constraint_hidden=[64,32]"}), IsEmpty());
  EXPECT_THAT(notes("cartpole/datacom", {"hyper.delta_mode=fixed"}), IsEmpty()) << "it has the default rate";
  EXPECT_THAT(notes("cartpole/lag_sac", {"network.constraint_hidden=[64,32]"}),
              ElementsAre("network.constraint_hidden=[64,32] is not read by lag_sac"));
  EXPECT_THAT(notes("cartpole/lag_sac", {"network.constraint_hidden=[128,128]"}), IsEmpty());
}

TEST(PlanResume, AcceptsTheSameCommandAndMoreSteps) {
  TrainOptions options = Typed();
  options.seeds = "3-5";
  options.overrides = {"hyper.cost_budget=7"};
  const auto stored = PlanExperiment(options);
  ASSERT_THAT(stored, IsOk());
  options.steps = 2000000;
  const auto resumed = PlanResume(options, *stored);
  ASSERT_THAT(resumed, IsOk());
  EXPECT_EQ(resumed->run().env_steps(), 2000000u);
  EXPECT_EQ(resumed->members_size(), 3);
}

TEST(PlanResume, AcceptsAnotherDeviceAndOtherThreads) {
  const auto stored = PlanExperiment(Typed());
  ASSERT_THAT(stored, IsOk());
  TrainOptions options = Typed();
  options.device = "cuda";
  options.overrides = {"learner.threads=3", "learner.pin_threads=true", "learner.kernels=tensor",
                       "learner.precision=tf32"};
  const auto resumed = PlanResume(options, *stored);
  ASSERT_THAT(resumed, IsOk());
  EXPECT_EQ(resumed->learner().device(), "cuda");
  EXPECT_EQ(resumed->learner().threads(), 3u);
  EXPECT_TRUE(resumed->learner().pin_threads());
  EXPECT_EQ(resumed->learner().precision(), "tf32");
}

TEST(PlanResume, RefusesAnyOtherChangeAndNamesIt) {
  TrainOptions options = Typed();
  const auto stored = PlanExperiment(options);
  ASSERT_THAT(stored, IsOk());
  options.overrides = {"learner.batch_size=32"};
  EXPECT_THAT(std::string(PlanResume(options, *stored).status().message()), HasSubstr("learner.batch_size"));
  options = Typed();
  options.lockstep = true;
  EXPECT_THAT(std::string(PlanResume(options, *stored).status().message()), HasSubstr("run.lockstep"));
  options = Typed();
  options.experiment = "deploy/experiments/cartpole/sac.textproto";
  EXPECT_THAT(std::string(PlanResume(options, *stored).status().message()), HasSubstr("cartpole/sac"));
}

TEST(PlanResume, SaysWhichPoliciesMoreStepsReplace) {
  const testing::TemporaryFolder run;
  v1::Experiment before, after;
  for (v1::Experiment* one : {&before, &after}) one->mutable_run()->set_steps_per_epoch(100);
  before.mutable_run()->set_env_steps(250);
  after.mutable_run()->set_env_steps(400);
  EXPECT_EQ(ReplacedPolicyNote(run.path(), before, after), "") << "the run did not reach its end";
  ASSERT_THAT(MakeFolders(run.path() + "/policies"), IsOk());
  for (const std::string epoch : {"2", "3"}) {
    ASSERT_THAT(WriteFileAtomically(run.path() + "/policies/epoch_000" + epoch + ".snapshot", ""), IsOk());
  }
  EXPECT_THAT(ReplacedPolicyNote(run.path(), before, after), HasSubstr("epoch 3 ended early, after 250 steps"));
  EXPECT_EQ(ReplacedPolicyNote(run.path(), before, before), "");
  before.mutable_run()->set_env_steps(200);
  EXPECT_EQ(ReplacedPolicyNote(run.path(), before, after), "") << "the epoch had ended";
}

TEST(PlanLayout, EveryMemberHasOneLaneByDefault) {
  EXPECT_EQ(Environments(1, 0), 1);
  EXPECT_EQ(Environments(5, 0), 5);
  EXPECT_EQ(Environments(25, 0), 25);
}

TEST(PlanLayout, RoundsEnvironmentsUpToAMultipleOfTheMembers) {
  EXPECT_EQ(Environments(5, 16), 20);
  EXPECT_EQ(Environments(16, 16), 16);
  EXPECT_EQ(Environments(2, 32), 32);
  EXPECT_EQ(Environments(3, 7), 9);
}

TEST(PlanLayout, ManyMembersAreSplitAmongTheActors) {
  EXPECT_EQ(Environments(100, 0, 4), 25);
  EXPECT_EQ(Environments(5, 0, 2), 3);
  EXPECT_EQ(Environments(2, 0, 4), 1);
  EXPECT_EQ(Environments(20, 16, 4), 16);
}

TEST(PlanLayout, LockstepIsOneActorWithOneEnvironmentPerMember) {
  TrainOptions options;
  EXPECT_EQ(PlanLayout(options, Members(3, true))->environments, 3);
  options.environments = 3;
  EXPECT_THAT(PlanLayout(options, Members(3, true)), IsOk());
  options.environments = 4;
  EXPECT_FALSE(PlanLayout(options, Members(3, true)).ok());
  options.environments = 0;
  options.actors = 2;
  EXPECT_FALSE(PlanLayout(options, Members(3, true)).ok());
}

TEST(Needs, GrowWithMembersAndCapacityAndARefusalStatesThem) {
  TrainOptions options = Typed();
  options.seeds = "0";
  const auto one = EstimateNeeds(*PlanExperiment(options), Layout());
  ASSERT_THAT(one, IsOk());
  options.seeds = "0-9";
  const auto ten = EstimateNeeds(*PlanExperiment(options), Layout());
  EXPECT_GT(ten->ring_bytes, 9 * one->ring_bytes);
  EXPECT_GT(ten->memory_bytes, one->memory_bytes);
  Needs huge = *one;
  huge.ring_bytes = 1ull << 60;
  const absl::Status status = CheckResources(huge, "runs/none");
  EXPECT_THAT(std::string(status.message()), HasSubstr("1152921504.6 GB"));
  EXPECT_THAT(CheckResources(Needs(), "runs/none"), IsOk());
}

// Largest resident memory of runs on Debian 12, 2026-11-22, one lane per member, a checkpoint every 200 updates. The
// replay's pages of its rings are not counted: the kernel takes them back when memory is short.
TEST(Needs, OfMemoryAreAtLeastWhatRunsUsedAndAtMostThreeTimesAsMuch) {
  struct Run {
    const char* experiment;
    const char* seeds;
    double learner_mib, actor_mib;
  };
  for (const Run& run : {Run{"air_hockey/datacom", "0", 51, 32}, Run{"air_hockey/datacom", "0-31", 351, 107},
                         Run{"navigation/datacom", "0-31", 355, 107}, Run{"air_hockey/iqn_datacom", "0-7", 153, 61},
                         Run{"cartpole/wcsac", "0-9", 126, 51}}) {
    SCOPED_TRACE(std::string(run.experiment) + " " + run.seeds);
    TrainOptions options;
    options.experiment = std::string("deploy/experiments/") + run.experiment + ".textproto";
    options.seeds = run.seeds;
    const auto experiment = PlanExperiment(options);
    ASSERT_THAT(experiment, IsOk());
    const auto needs = EstimateNeeds(*experiment, *PlanLayout(options, *experiment));
    ASSERT_THAT(needs, IsOk());
    const double mib = 1 << 20;
    EXPECT_GE(needs->learner_memory_bytes / mib, run.learner_mib);
    EXPECT_LE(needs->learner_memory_bytes / mib, 3 * run.learner_mib);
    EXPECT_GE(needs->actor_memory_bytes / mib, run.actor_mib);
    EXPECT_LE(needs->actor_memory_bytes / mib, 3 * run.actor_mib);
  }
}

// Each of the four has 8 members until the others are gone.
TEST(Needs, OfOneOfFourActorsAreThoseOfAnActorThatServesAllMembers) {
  TrainOptions options;
  options.experiment = "deploy/experiments/air_hockey/datacom.textproto";
  options.seeds = "0-31";
  const auto experiment = PlanExperiment(options);
  ASSERT_THAT(experiment, IsOk());
  const auto one = EstimateNeeds(*experiment, *PlanLayout(options, *experiment));
  options.actors = 4;
  const auto four = EstimateNeeds(*experiment, *PlanLayout(options, *experiment));
  EXPECT_GE(four->actor_memory_bytes, 107u << 20) << "what such an actor used";
  EXPECT_EQ(four->actor_memory_bytes, one->actor_memory_bytes);
  EXPECT_LT(four->memory_bytes, one->memory_bytes + 3 * one->actor_memory_bytes) << "together they serve them once";
}

TEST(Needs, OfAThousandSmallMembersFitInAFewGigabytes) {
  TrainOptions options = Typed();
  options.seeds = "0-999";
  options.overrides = {"network.actor_hidden=[8]", "network.critic_hidden=[8]", "network.constraint_hidden=[8]",
                       "replay.capacity=2000"};
  const auto experiment = PlanExperiment(options);
  ASSERT_THAT(experiment, IsOk());
  EXPECT_LT(EstimateNeeds(*experiment, *PlanLayout(options, *experiment))->memory_bytes, 4e9);
}

TEST(Needs, ADrawIsLimitedByTheBatchOfOneMember) {
  TrainOptions options;
  options.experiment = "deploy/experiments/air_hockey/sac.textproto";
  options.seeds = "0-19";  // 24.6 MB for all, 1.2 MB for one
  options.overrides = {"learner.batch_size=8192", "replay.min_size=9000"};
  const auto many = PlanExperiment(options);
  ASSERT_THAT(many, IsOk());
  EXPECT_THAT(EstimateNeeds(*many, *PlanLayout(options, *many)), IsOk());
  options.experiment = "deploy/experiments/air_hockey_7dof/datacom.textproto";
  options.overrides = {"learner.batch_size=65536", "replay.min_size=70000"};
  const auto large = PlanExperiment(options);
  ASSERT_THAT(large, IsOk());
  EXPECT_THAT(std::string(EstimateNeeds(*large, *PlanLayout(options, *large)).status().message()),
              HasSubstr("a member's draw of 65542 rows"));
}

// Opens a replay of the experiment in an empty folder.
TEST(Needs, OfTheReplayEqualTheSizeOfItsFiles) {
  TrainOptions options = Typed();
  options.seeds = "0-2";
  options.overrides = {"replay.capacity=3000", "replay.failure_capacity=100", "run.steps_per_epoch=500"};
  for (const uint64_t steps : {2500, 100000}) {  // fewer than the capacity, more
    options.steps = steps;
    const auto experiment = PlanExperiment(options);
    ASSERT_THAT(experiment, IsOk());
    const auto needs = EstimateNeeds(*experiment, Layout());
    ASSERT_THAT(needs, IsOk());
    datacom::testing::TemporaryFolder folder;
    replay::Options store = replay::SetUp(*experiment).value().options;
    store.run_id = "run";
    store.folder = folder.path();
    const auto opened = replay::Store::Open(
        RowSchema::For(/*obs_dim=*/5, /*action_dim=*/1, *ActingRuleColumns("safe_map", /*action_dim=*/1)), store);
    ASSERT_THAT(opened, IsOk());
    uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      if (file.path().filename() != "sessions") bytes += file.file_size();  // a few bytes for each session and start
    }
    EXPECT_EQ(needs->ring_bytes, bytes) << steps << " steps";
  }
}

}  // namespace
}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
