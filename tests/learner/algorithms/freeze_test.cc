// For every algorithm: an update that freezes a member leaves no trace in it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/learner/algorithms/testing.h"

namespace datacom::learner {
namespace {

class FrozenMembers : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, FrozenMembers, ::testing::ValuesIn(RegisteredAlgorithms()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Robust, FrozenMembers, ::testing::Values("datacom_robust", "datacom_priced"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Joined, FrozenMembers, ::testing::Values("datacom_known", "iqn_datacom_known"),
                         [](const auto& info) { return info.param; });

class FrozenPretraining : public FrozenMembers {};
INSTANTIATE_TEST_SUITE_P(All, FrozenPretraining, ::testing::ValuesIn(PretrainedNames()),
                         [](const auto& info) { return info.param; });

// Makes a loss or gradient of member 1 not finite, each in another part of the update.
struct Poison {
  const char* name;
  void (*spoil)(Batch* batch, const AlgorithmConfig& config, Algorithm* algorithm);
  bool always = true;     // freezes a member of any algorithm; else only of those that read it
  bool on_policy = true;  // the same for those that learn from whole epochs
  bool safe_loop = true;  // freezes safe_loop, if `always`
};

// Sets all entries of member 1 of three: safe_loop leaves out rows that end an episode, and may draw some rows never.
template <class T>
void Spoil(std::vector<T>* values, T value) {
  const size_t own = values->size() / 3;
  std::fill_n(values->begin() + own, own, value);
}

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

void SetAll(Algorithm* algorithm, const std::string& name, float value) {
  SetArray(algorithm, 1, name, std::vector<float>(GetArray(*algorithm, 1, name).size(), value));
}

const Poison kPoisons[] = {
    {"reward", [](Batch* b, const AlgorithmConfig&, Algorithm*) { Spoil(&b->reward, kNaN); }},
    {"observation", [](Batch* b, const AlgorithmConfig&, Algorithm*) { Spoil(&b->observation, kInfinity); }},
    {"next observation", [](Batch* b, const AlgorithmConfig&, Algorithm*) { Spoil(&b->next_observation, kInfinity); },
     true, false},
    {"final observation",
     [](Batch* b, const AlgorithmConfig& c, Algorithm*) {
       if (c.epoch_rows > 0) b->next_observation[b->next_observation.size() / 3 * 2 - 1] = kNaN;
     },
     false, true},
    {"a column of the acting rule",
     [](Batch* b, const AlgorithmConfig&, Algorithm*) {
       for (std::vector<float>& column : b->columns) Spoil(&column, kNaN);
     },
     false, true},
    {"action", [](Batch* b, const AlgorithmConfig&, Algorithm*) { Spoil(&b->action, kNaN); }},
    {"absorbing", [](Batch* b, const AlgorithmConfig&, Algorithm*) { Spoil(&b->absorbing, kNaN); }, true, true, false},
    {"next noise", [](Batch* b, const AlgorithmConfig&, Algorithm*) { Spoil(&b->noise_next, kNaN); }, true, false,
     false},
    {"noise", [](Batch* b, const AlgorithmConfig&, Algorithm*) { Spoil(&b->noise_actor, kNaN); }, false, false},
    {"cost", [](Batch* b, const AlgorithmConfig&, Algorithm*) { Spoil(&b->cost, kInfinity); }, false},
    {"failure cost", [](Batch* b, const AlgorithmConfig&, Algorithm*) { Spoil(&b->failure_cost, kNaN); }, false, false},
    {"z", [](Batch* b, const AlgorithmConfig&, Algorithm*) { Spoil(&b->now.z, kNaN); }, false, false},
    {"next z", [](Batch* b, const AlgorithmConfig&, Algorithm*) { Spoil(&b->next.z, kNaN); }, false, false},
    {"next G", [](Batch* b, const AlgorithmConfig&, Algorithm*) { Spoil<double>(&b->next.G, NAN); }, false, false},
    {"level", [](Batch* b, const AlgorithmConfig&, Algorithm*) { Spoil(&b->level, kNaN); }, false, false},
    {"a target that overflows",
     [](Batch*, const AlgorithmConfig& config, Algorithm* a) {
       if (config.epoch_rows == 0) SetAll(a, "target_critic.0.2.weight", -3e38f);
     },
     true, false, false},
    {"a gradient that overflows", [](Batch* b, const AlgorithmConfig&, Algorithm*) { Spoil(&b->reward, 3e38f); }},
    {"an actor without numbers",
     [](Batch*, const AlgorithmConfig& config, Algorithm* a) {
       const bool one_net = config.algorithm == "safe_layer_td3" || config.algorithm == "safe_loop";
       SetAll(a, one_net ? "actor.2.bias" : "actor.mean.2.bias", kNaN);
     }},
};

// The bytes of a member by entry, without its active flag, statistics and rows.
State Own(const State& state, int members, int member) {
  State own;
  for (const auto& [name, bytes] : state) {
    if (name == "signature" || name == "updates" || name == "policy_steps" || name == "memory") continue;
    if (name == "active" || name.rfind("stats.", 0) == 0) continue;
    const size_t size = bytes.size() / members;
    own[name] = bytes.substr(member * size, size);
  }
  return own;
}

TEST_P(FrozenMembers, LeavesNoTraceOfAnUpdateInWhichALossOrAGradientIsNotFinite) {
  for (const char* kernels : {"fused", "tensor"}) {
    const AlgorithmConfig config = SmallConfig(GetParam(), 3, kernels);
    for (const Poison& poison : kPoisons) {
      SCOPED_TRACE(std::string(kernels) + " " + poison.name);
      const auto algorithm = MakeAlgorithm(config), healthy = MakeAlgorithm(config);
      for (int u = 0; u < 2; ++u) {  // the third update also steps TD3's actor
        algorithm->Update(RandomBatch(config, u));
        healthy->Update(RandomBatch(config, u));
      }
      Batch poisoned = RandomBatch(config, 2);
      poison.spoil(&poisoned, config, algorithm.get());
      const State before = algorithm->Save();
      algorithm->Update(poisoned);
      healthy->Update(RandomBatch(config, 2));
      const State after = algorithm->Save();
      const bool frozen = algorithm->GetStats()[1].diverged() != 0;
      const bool must =
          IsOnPolicy(GetParam()) ? poison.on_policy : poison.always && (!InfoOf(GetParam()).plans || poison.safe_loop);
      EXPECT_TRUE(frozen || !must);
      if (frozen) {
        EXPECT_EQ(Differing(Own(before, 3, 1), Own(after, 3, 1)), "");
      }
      for (const int other : {0, 2}) {
        EXPECT_EQ(Differing(Own(healthy->Save(), 3, other), Own(after, 3, other)), "") << "of member " << other;
        EXPECT_FALSE(algorithm->GetStats()[other].diverged());
      }
      algorithm->Update(RandomBatch(config, 3));
      if (frozen) {
        EXPECT_EQ(Differing(Own(before, 3, 1), Own(algorithm->Save(), 3, 1)), "");
      }
    }
  }
}

TEST_P(FrozenPretraining, LeavesNoTraceOfAPretrainingUpdateThatIsNotFinite) {
  const AlgorithmConfig config = SmallConfig(GetParam(), 3);
  int frozen = 0;
  for (const Poison& poison : kPoisons) {
    SCOPED_TRACE(poison.name);
    const auto algorithm = MakeAlgorithm(config);
    algorithm->Pretrain(RandomBatch(config, 0));
    Batch poisoned = RandomBatch(config, 1);
    poison.spoil(&poisoned, config, algorithm.get());
    const State before = algorithm->Save();
    algorithm->Pretrain(poisoned);
    if (algorithm->GetStats()[1].diverged()) {
      ++frozen;
      EXPECT_EQ(Differing(Own(before, 3, 1), Own(algorithm->Save(), 3, 1)), "");
    }
    EXPECT_NE(Differing(Own(before, 3, 2), Own(algorithm->Save(), 3, 2)), "") << "the other members must learn";
  }
  EXPECT_GT(frozen, 0);
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
