#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/machine.h"
#include "common/config/algorithms.h"
#include "learner/algorithms/algorithm.h"
#include "learner/algorithms/register_algorithm.h"
#include "learner/setup.h"
#include "tests/testing/fake_learner_run.h"

namespace datacom::learner {
namespace {

int ThreadsOf(uint32_t threads, int members, const std::string& device = "cpu") {
  v1::Experiment experiment = FakeExperiment();
  while (experiment.members_size() < members) experiment.add_members()->set_seed(100 + experiment.members_size());
  experiment.mutable_learner()->set_threads(threads);
  experiment.mutable_learner()->set_device(device);
  const std::shared_ptr<Team> team = MakeAlgorithmConfig(experiment, FakeTaskModel())->team;
  return team == nullptr ? 1 : team->threads();
}

TEST(AlgorithmConfig, HasTheThreadsOfTheExperimentButAtMostTwoForEachMember) {
  EXPECT_EQ(ThreadsOf(1, 2), 1);
  EXPECT_EQ(ThreadsOf(3, 2), 3);
  EXPECT_EQ(ThreadsOf(64, 2), 4);
  EXPECT_EQ(ThreadsOf(64, 5), 10);
  EXPECT_EQ(ThreadsOf(0, 100), UsableProcessors());
  EXPECT_EQ(ThreadsOf(8, 8, "cuda"), 8) << "for decoding";
}

TEST(AlgorithmConfig, OnlyOnPolicyAlgorithmsHaveAnEpochAsUpdate) {
  v1::Experiment experiment;
  experiment.set_name("epochs");
  experiment.set_task("cartpole");
  experiment.set_algorithm("ppo_lag");
  experiment.mutable_run()->set_env_steps(3500);
  experiment.mutable_run()->set_steps_per_epoch(500);
  const AlgorithmConfig config = MakeAlgorithmConfig(ResolveExperiment(experiment), FakeTaskModel()).value();
  EXPECT_EQ(config.epoch_rows, 500);
  EXPECT_EQ(config.epochs, 7u);
  EXPECT_EQ(FailureRows(config), 0);
  EXPECT_EQ(MakeAlgorithmConfig(FakeExperiment(), FakeTaskModel())->epoch_rows, 0);
}

TEST(RunSettings, OnlyAlgorithmsWithABudgetShowOne) {
  v1::Experiment experiment;
  experiment.set_name("budgets");
  experiment.set_task("cartpole");
  const auto budget = [&] { return MakeRunSettings(ResolveExperiment(experiment)).cost_budgets.at(0); };
  experiment.set_algorithm("sac");
  EXPECT_TRUE(std::isnan(budget()));
  experiment.set_algorithm("datacom");
  experiment.mutable_hyper()->set_cost_budget(7);
  EXPECT_EQ(budget(), 7);
}

TEST(RunSettings, SayWhichAlgorithmsAreOnPolicy) {
  v1::Experiment experiment;
  experiment.set_name("policies");
  experiment.set_task("cartpole");
  for (const auto& [algorithm, on_policy] :
       {std::pair("sac", false), std::pair("ppo_lag", true), std::pair("rcpo", true)}) {
    experiment.set_algorithm(algorithm);
    EXPECT_EQ(MakeRunSettings(ResolveExperiment(experiment)).on_policy, on_policy) << algorithm;
  }
}

TEST(AlgorithmConfig, BoundsReturnsByTheTasksRewardsWhereAMemberHasNoBoundsOfItsOwn) {
  v1::Experiment experiment = FakeExperiment();
  experiment.mutable_learner()->set_discount(0.75);
  TaskModel task = FakeTaskModel();
  task.spec.rewards = RewardRange{-5, 10, -5, 10};
  const v1::Hyper& none = v1::Hyper::default_instance();
  EXPECT_EQ(MakeAlgorithmConfig(experiment, task)->members[0].hyper.return_floor(), none.return_floor());
  experiment.mutable_learner()->set_bound_returns(true);
  // [-20, 40] for ever, and a tenth of the width on both sides.
  const v1::Hyper bounded = MakeAlgorithmConfig(experiment, task)->members[0].hyper;
  EXPECT_DOUBLE_EQ(bounded.return_floor(), -26);
  EXPECT_DOUBLE_EQ(bounded.return_ceiling(), 46);
  experiment.mutable_hyper()->set_return_floor(-7);
  const v1::Hyper own = MakeAlgorithmConfig(experiment, task)->members[0].hyper;
  EXPECT_DOUBLE_EQ(own.return_floor(), -7);
  EXPECT_DOUBLE_EQ(own.return_ceiling(), 46);
  experiment.mutable_hyper()->set_return_floor(50);
  EXPECT_THAT(std::string(MakeAlgorithmConfig(experiment, task).status().message()),
              ::testing::HasSubstr("hyper.return_floor: 50 is not below the ceiling, 46"));
  experiment.mutable_hyper()->clear_return_floor();
  experiment.mutable_hyper()->set_return_ceiling(-30);
  EXPECT_THAT(std::string(MakeAlgorithmConfig(experiment, task).status().message()),
              ::testing::HasSubstr("hyper.return_ceiling: -30 is not above the floor, -26"));
  task.spec.rewards.reset();
  EXPECT_THAT(std::string(MakeAlgorithmConfig(experiment, task).status().message()),
              ::testing::HasSubstr("learner.bound_returns: task"));
}

TEST(AlgorithmConfig, HasTheControllerThatTheExperimentImitates) {
  v1::Experiment experiment = FakeExperiment();
  TaskModel task = FakeTaskModel();
  task.scripted = {{"push", "Pushes.", [](const double* row, double* action) { *action = row[0] / 2; }}};
  experiment.mutable_demonstrations()->set_controller("push");
  EXPECT_EQ(MakeAlgorithmConfig(experiment, task)->imitation.controller, nullptr) << "it only demonstrates";
  experiment.mutable_demonstrations()->set_imitation(2.5);
  experiment.mutable_demonstrations()->set_until_update(70);
  const Imitation imitation = MakeAlgorithmConfig(experiment, task)->imitation;
  EXPECT_EQ(imitation.weight, 2.5);
  EXPECT_EQ(imitation.until_update, 70u);
  const double row[] = {3, 0};
  double command = 0;
  imitation.controller(row, &command);
  EXPECT_EQ(command, 1.5);
  experiment.mutable_demonstrations()->set_controller("pull");
  EXPECT_THAT(std::string(MakeAlgorithmConfig(experiment, task).status().message()), ::testing::HasSubstr("pull"));
}

// Before the first test, because facts are read once.
class Misread : public ::testing::Environment {
  void SetUp() override {
    RegisterAlgorithmFacts("name: 'misread' acting_rule: 'gaussian_policy' extends: 'sac' test_only: true");
    AddAlgorithm("misread", {nullptr, [](const AlgorithmConfig&) { return std::vector<RuleColumn>{{"log_prob"}}; }});
  }
};
[[maybe_unused]] const ::testing::Environment* const kMisread = ::testing::AddGlobalTestEnvironment(new Misread);

TEST(AlgorithmConfig, RefusesAColumnThatTheActingRuleDoesNotSend) {
  v1::Experiment experiment;
  experiment.set_name("reading");
  experiment.set_task("cartpole");
  experiment.set_algorithm("misread");
  const absl::Status status = MakeAlgorithmConfig(ResolveExperiment(experiment), FakeTaskModel()).status();
  EXPECT_EQ(status.message(),
            "algorithm misread reads the row column log_prob[1], which acting rule gaussian_policy does not send");
}

TEST(AlgorithmConfig, RefusesATaskInWhichTheAlgorithmCannotAct) {
  for (const auto& [algorithm, why] : {std::pair<const char*, const char*>{"atacom_nfi", "has no known constraints"},
                                       {"safe_loop", "has no known cost of an observation"}}) {
    v1::Experiment experiment;
    experiment.set_name("acting");
    experiment.set_task("cartpole");
    experiment.set_algorithm(algorithm);
    const absl::Status status = MakeAlgorithmConfig(ResolveExperiment(experiment), FakeTaskModel()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << algorithm;
    EXPECT_NE(std::string(status.message()).find(why), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
