// The number of threads changes no bit of any algorithm.
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/learner/algorithms/testing.h"

namespace datacom::learner {
namespace {

class EveryAlgorithm : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, EveryAlgorithm, ::testing::ValuesIn(RegisteredAlgorithms()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Joined, EveryAlgorithm, ::testing::Values("datacom_known", "iqn_datacom_known"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Robust, EveryAlgorithm, ::testing::Values("sac_robust", "datacom_robust"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Following, EveryAlgorithm, ::testing::Values("datacom_peak", "datacom_priced"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Normalised, EveryAlgorithm, ::testing::Values("sac_layer_norm", "datacom_layer_norm"),
                         [](const auto& info) { return info.param; });

AlgorithmConfig ConfigOf(const std::string& algorithm, int members, int threads) {
  AlgorithmConfig config = SmallConfig(algorithm, members);
  if (threads > 1) config.team = std::make_shared<Team>(threads);
  return config;
}

// Everything that an algorithm does in a run, at updates [first, last).
void Advance(Algorithm* algorithm, const AlgorithmConfig& config, int first, int last) {
  for (int u = first; u < last; ++u) {
    if (u < 2 && Pretrains(*FindAlgorithm(config.algorithm))) {
      algorithm->Pretrain(RandomBatch(config, 1000 + u));
      continue;
    }
    ApplyEpisodes(algorithm, config, u);
    algorithm->Update(RandomBatch(config, u));
  }
}

TEST_P(EveryAlgorithm, HasTheSameStateWithAnyNumberOfThreads) {
  for (const int members : {1, 2, 5}) {
    State expected;
    for (const int threads : {1, 2, 3, 8}) {
      const AlgorithmConfig config = ConfigOf(GetParam(), members, threads);
      const auto algorithm = MakeAlgorithm(config);
      Advance(algorithm.get(), config, 0, 8);
      if (threads == 1) expected = algorithm->Save();
      EXPECT_EQ(Differing(expected, algorithm->Save()), "") << members << " members on " << threads << " threads";
    }
  }
}

TEST_P(EveryAlgorithm, ContinuesAStateThatAnotherNumberOfThreadsSaved) {
  const AlgorithmConfig one = ConfigOf(GetParam(), 5, 1);
  const auto straight = MakeAlgorithm(one);
  Advance(straight.get(), one, 0, 8);
  for (const int before : {1, 2, 3, 8}) {
    const AlgorithmConfig first = ConfigOf(GetParam(), 5, before);
    const AlgorithmConfig second = ConfigOf(GetParam(), 5, before == 1 ? 3 : before - 1);
    const auto saved = MakeAlgorithm(first), resumed = MakeAlgorithm(second);
    Advance(saved.get(), first, 0, 5);
    resumed->Load(saved->Save());
    Advance(resumed.get(), second, 5, 8);
    EXPECT_EQ(Differing(straight->Save(), resumed->Save()), "") << "saved by " << before << " threads";
  }
}

TEST(Following, OneMemberOfEachModeAmongOthersHasTheSameStateWithAnyNumberOfThreads) {
  AlgorithmConfig one = ConfigOf("datacom", 5, 1), three = ConfigOf("datacom", 5, 3);
  for (AlgorithmConfig* config : {&one, &three}) {
    config->members[1].hyper.set_delta_mode("peak");
    config->members[3].hyper.set_delta_mode("fixed");
  }
  const auto a = MakeAlgorithm(one), b = MakeAlgorithm(three), resumed = MakeAlgorithm(three);
  Advance(a.get(), one, 0, 6);
  Advance(b.get(), three, 0, 4);
  resumed->Load(b->Save());
  Advance(resumed.get(), three, 4, 6);
  EXPECT_EQ(Differing(a->Save(), resumed->Save()), "");
}

TEST_P(EveryAlgorithm, ShowsTheSameMembersWithAnyNumberOfThreads) {
  const AlgorithmConfig one = ConfigOf(GetParam(), 5, 1), three = ConfigOf(GetParam(), 5, 3);
  const auto a = MakeAlgorithm(one), b = MakeAlgorithm(three);
  Advance(a.get(), one, 0, 5);
  Advance(b.get(), three, 0, 5);
  EXPECT_EQ(a->shared_entries(), b->shared_entries());
  EXPECT_EQ(BitsOf(a->GetStats()), BitsOf(b->GetStats()));
  for (int m = 0; m < 5; ++m) {
    const ActingParameters p = a->GetActingParameters()[m], q = b->GetActingParameters()[m];
    EXPECT_EQ(p.scalars, q.scalars);
    ASSERT_EQ(p.arrays.size(), q.arrays.size());
    for (size_t i = 0; i < p.arrays.size(); ++i) EXPECT_EQ(p.arrays[i].values, q.arrays[i].values);
    EXPECT_EQ(AllValues(*a, m), AllValues(*b, m));
  }
  const std::string name = ArrayNames(*b).front();
  SetArray(b.get(), 4, name, std::vector<float>(GetArray(*b, 4, name).size(), 0.25f));
  EXPECT_EQ(GetArray(*b, 4, name).front(), 0.25f);
  EXPECT_EQ(GetArray(*b, 3, name), GetArray(*a, 3, name));
  b->ResetStats();
  EXPECT_TRUE(std::isnan(b->GetStats()[4].critic_loss()));
}

TEST_P(EveryAlgorithm, FreezesTheSameMembersWithAnyNumberOfThreads) {
  State expected;
  for (const int threads : {1, 2, 8}) {
    const AlgorithmConfig config = ConfigOf(GetParam(), 3, threads);
    const auto algorithm = MakeAlgorithm(config);
    for (int u = 0; u < 4; ++u) {
      Batch batch = RandomBatch(config, u);
      const int rows = BatchRows(config);
      if (u == 2) std::fill_n(batch.reward.begin() + rows, rows, std::nanf(""));  // of member 1
      algorithm->Update(batch);
    }
    EXPECT_EQ(Diverged(*algorithm), (std::vector<bool>{0, 1, 0}));
    if (threads == 1) expected = algorithm->Save();
    EXPECT_EQ(Differing(expected, algorithm->Save()), "") << threads << " threads";
  }
}

TEST(Threads, AStateThatDoesNotFitIsRefusedAndChangesNothing) {
  const AlgorithmConfig config = ConfigOf("datacom", 5, 3);
  const auto algorithm = MakeAlgorithm(config);
  Advance(algorithm.get(), config, 0, 3);
  const State before = algorithm->Save();
  State short_delta = before, unknown = before, missing = before;
  short_delta["delta"].resize(short_delta["delta"].size() / 5 * 4);
  unknown["surplus"] = "1";
  missing.erase("adam.first");
  for (const State& state : {short_delta, unknown, missing, MakeAlgorithm(ConfigOf("datacom", 4, 3))->Save()}) {
    EXPECT_THROW(algorithm->Load(state), std::invalid_argument);
    EXPECT_EQ(Differing(before, algorithm->Save()), "");
  }
}

TEST(Threads, AWrongConfigurationIsRefusedAsOnOneThread) {
  AlgorithmConfig config = ConfigOf("iqn_datacom", 3, 3);
  config.quantiles = 0;
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
