// Batches from a dataset, and which algorithms can be pre-trained with them.
#include <gtest/gtest.h>

#include <set>

#include "common/config/algorithms.h"
#include "common/config/experiment.h"
#include "common/records/dataset.h"
#include "learner/batch_decoder.h"
#include "learner/dataset_draws.h"
#include "learner/setup.h"
#include "tests/learner/algorithms/testing.h"
#include "tests/testing/datasets.h"
#include "tests/testing/fake_learner_draws.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::learner {
namespace {

using datacom::testing::IsOk;

constexpr int kObs = 2, kAction = 1;

class DatasetDrawsTest : public ::testing::Test {
 protected:
  DatasetDrawsTest() {
    EXPECT_THAT(datacom::testing::MakeDataset(folder_, schema_, {300, 200}), IsOk());
    config_.learner.set_batch_size(32);
    config_.learner.set_failure_batch_size(6);
    config_.run_seed = 5;
    config_.obs_dim = config_.q_dim = kObs;
    config_.action_dim = kAction;
  }
  AlgorithmConfig Seeds(const std::vector<uint64_t>& seeds) const {
    AlgorithmConfig config = config_;
    for (const uint64_t seed : seeds) config.members.emplace_back().seed = seed;
    return config;
  }
  v1::DrawReply Draw(const AlgorithmConfig& config, uint64_t update) const {
    DatasetDraws draws(std::make_shared<const Dataset>(*Dataset::Read(folder_, "cartpole", schema_)), config);
    draws.Request(update);
    return *draws.Next(std::chrono::milliseconds(0));
  }

  const datacom::testing::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path() + "/dataset";
  const RowSchema schema_ = RowSchema::For(kObs, kAction);
  AlgorithmConfig config_;
};

TEST_F(DatasetDrawsTest, ABatchDependsOnSeedsAndUpdateButNotOnOtherMembers) {
  const v1::DrawReply alone = Draw(Seeds({8}), 3), among = Draw(Seeds({7, 8, 9}), 3);
  EXPECT_EQ(alone.batches(0).SerializeAsString(), among.batches(1).SerializeAsString());
  EXPECT_NE(among.batches(0).main(), among.batches(1).main());
  EXPECT_NE(Draw(Seeds({8}), 4).batches(0).main(), alone.batches(0).main());
  config_.run_seed = 6;
  EXPECT_NE(Draw(Seeds({8}), 3).batches(0).main(), alone.batches(0).main());
}

TEST_F(DatasetDrawsTest, EveryMemberDrawsFromAllRows) {
  std::set<float> seen;
  for (uint64_t update = 1; update <= 300; ++update) {
    const std::string main = Draw(Seeds({8}), update).batches(0).main();
    for (uint32_t row = 0; row < 32; ++row) seen.insert(At<float>(main.data(), row * kObs * sizeof(float)));
  }
  // 9600 draws from 500 rows: the chance that a given row is missed is (1 - 1/500)^9600 = 4.5e-9.
  EXPECT_EQ(seen.size(), 500u);
}

TEST_F(DatasetDrawsTest, FailureRowsAreRowsWithCost) {
  const std::string failure = Draw(Seeds({8}), 1).batches(0).failure();
  ASSERT_EQ(failure.size(), 6 * schema_.learning_row_bytes());
  const size_t costs = 6 * (kObs + kAction + 1) * sizeof(float);
  for (int row = 0; row < 6; ++row) EXPECT_GT(At<float>(failure.data(), costs + row * sizeof(float)), 0);
}

TEST_F(DatasetDrawsTest, NoiseDiffersFromTheNoiseOfTheRunsUpdates) {
  const AlgorithmConfig config = Seeds({8});
  const auto dynamics = std::make_shared<FakeControlAffine>(kObs, kAction);
  const auto noise = [&](const std::string& streams) {
    BatchDecoder decoder(config, schema_, dynamics, KnownRows(), streams);
    PreparedUpdate prepared;
    prepared.batch.Resize(config);
    v1::DrawReply reply = Draw(config, 1);
    EXPECT_THAT(decoder.Decode(&reply, &prepared), IsOk());
    return prepared.batch.noise_next;
  };
  EXPECT_NE(noise("learner."), noise("learner.pretrain."));
}

TEST(Pretraining, TheRegisterSaysWhichAlgorithmsCanBePretrained) {
  for (const AlgorithmInfo& info : Algorithms()) {
    const AlgorithmConfig config = SmallConfig(info.name, 1);
    const auto algorithm = MakeAlgorithm(config);
    bool can = true;
    try {
      algorithm->Pretrain(RandomBatch(config, 1));
    } catch (const std::invalid_argument&) {
      can = false;
    }
    EXPECT_EQ(can, ReadsSetting(info, *v1::Experiment::descriptor()->FindFieldByName("pretrain"))) << info.name;
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
