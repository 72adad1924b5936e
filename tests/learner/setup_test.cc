#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/base/machine.h"
#include "learner/algorithms/algorithm.h"
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
  EXPECT_EQ(ThreadsOf(8, 8, "cuda"), 1) << "LibTorch has threads of its own";
}

TEST(AlgorithmConfig, AnEpochIsTheUpdateOfOnPolicyAlgorithmsAlone) {
  v1::Experiment experiment;
  experiment.set_name("epochs");
  experiment.set_task("cartpole");
  experiment.set_algorithm("ppo_lag");
  experiment.mutable_run()->set_env_steps(3500);
  experiment.mutable_run()->set_steps_per_epoch(500);
  const AlgorithmConfig config = MakeAlgorithmConfig(ResolveExperiment(experiment), FakeTaskModel()).value();
  EXPECT_EQ(config.epoch_rows, 500);
  EXPECT_EQ(config.epochs, 7u);
  EXPECT_EQ(config.failure_batch_size, 0);
  EXPECT_EQ(MakeAlgorithmConfig(FakeExperiment(), FakeTaskModel())->epoch_rows, 0);
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
