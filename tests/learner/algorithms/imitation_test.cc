// Tests that a policy imitates a controller's commands.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "learner/algorithms/algorithm.h"
#include "tests/learner/algorithms/testing.h"

namespace datacom::learner {
namespace {

constexpr size_t kRows = 12;

// The mean over a batch's rows of the squared distance between the commands and the policy's mean actions, computed
// here from its weights. The unit is half of the action box: 1 for the first action, 2 for the second.
double DistanceOfMeans(const Algorithm& algorithm, const Batch& batch) {
  std::vector<float> values(batch.observation);
  size_t width = values.size() / kRows;
  for (const std::string layer : {"0", "1", "2"}) {
    const std::vector<float> weight = GetArray(algorithm, 0, "actor.mean." + layer + ".weight");
    const std::vector<float> bias = GetArray(algorithm, 0, "actor.mean." + layer + ".bias");
    std::vector<float> next(kRows * bias.size());
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t j = 0; j < bias.size(); ++j) {
        float sum = bias[j];
        for (size_t i = 0; i < width; ++i) sum += values[r * width + i] * weight[i * bias.size() + j];
        next[r * bias.size() + j] = layer == "2" ? std::tanh(sum) : std::max(sum, 0.0f);
      }
    }
    values = next;
    width = bias.size();
  }
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double command = batch.command[i] / (i % 2 == 0 ? 1.0 : 2.0);
    sum += (values[i] - command) * (values[i] - command);
  }
  return sum / kRows;
}

// The critics' gradients are small beside a weight of 1,000.
TEST(SoftActorCritic, APolicyComesToTheCommandsThatItImitatesAndAWeightOfNothingChangesNothing) {
  for (const std::string name : {"sac", "datacom"}) {
    AlgorithmConfig plain = SmallConfig(name, 1), config = plain;
    config.imitation.controller = [](const double*, double*) {};
    const auto imitates = MakeAlgorithm(config), ignores = MakeAlgorithm(config), knows_none = MakeAlgorithm(plain);
    Batch batch = RandomBatch(config, 1);
    ASSERT_EQ(batch.reward.size(), kRows);
    for (size_t i = 0; i < batch.command.size(); ++i) batch.command[i] = i % 2 == 0 ? 0.5f : -1.0f;
    EXPECT_GT(DistanceOfMeans(*imitates, batch), 0.3) << "0.5 for actions of 0";
    for (int update = 0; update < 400; ++update) {
      batch.imitation = {1000};
      imitates->Update(batch);
      batch.imitation = {0};
      ignores->Update(batch);
      knows_none->Update(batch);
    }
    EXPECT_EQ(AllValues(*ignores, 0), AllValues(*knows_none, 0)) << name;
    EXPECT_LT(DistanceOfMeans(*imitates, batch), 0.05) << name;
    EXPECT_GT(DistanceOfMeans(*ignores, batch), 0.1) << name;
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
