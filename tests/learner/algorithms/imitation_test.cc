// Tests that a policy imitates a controller's commands.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "learner/algorithms/algorithm.h"
#include "tests/learner/algorithms/testing.h"

namespace datacom::learner {
namespace {

// The critics' gradients are small beside a weight of 1,000.
TEST(SoftActorCritic, APolicyComesToTheCommandsThatItImitatesAndAWeightOfNothingChangesNothing) {
  for (const std::string name : {"sac", "datacom"}) {
    AlgorithmConfig plain = SmallConfig(name, 1), config = plain;
    config.imitation.controller = [](const double*, double*) {};
    const auto imitates = MakeAlgorithm(config), ignores = MakeAlgorithm(config), knows_none = MakeAlgorithm(plain);
    Batch batch = RandomBatch(config, 1);
    for (size_t i = 0; i < batch.command.size(); ++i) batch.command[i] = i % 2 == 0 ? 0.5f : -1.0f;
    for (int update = 0; update < 400; ++update) {
      if (update == 350) imitates->ResetStats();
      batch.imitation = {1000};
      imitates->Update(batch);
      batch.imitation = {0};
      ignores->Update(batch);
      knows_none->Update(batch);
    }
    EXPECT_EQ(AllValues(*ignores, 0), AllValues(*knows_none, 0)) << name;
    // The loss is nearly the weight times the squared distance; the second action is measured in halves of its box, 2.
    const double distance = imitates->GetStats()[0].policy_loss() / 1000;
    EXPECT_LT(distance, 0.1) << name << ": an action of 0 has the distance 0.5";
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
