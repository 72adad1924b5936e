// The promises of learner/algorithms/algorithm.h, for every registered algorithm.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "absl/strings/str_join.h"
#include "common/acting/acting_rule.h"
#include "common/config/algorithms.h"
#include "common/safety/risk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/algorithms/delta.h"
#include "tests/learner/algorithms/testing.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/larger_or_nan.h"

// Counts heap requests of this process; operator new also ends here.
namespace {
using ::datacom::testing::IsOk;

long heap_requests = 0;
}  // namespace
#ifndef DATACOM_SANITIZED
#define DATACOM_COUNTS_HEAP 1
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* malloc(size_t size) {
  ++heap_requests;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++heap_requests;
  return __libc_calloc(count, size);
}
}
#endif

namespace datacom::learner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class EveryAlgorithm : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, EveryAlgorithm, ::testing::ValuesIn(RegisteredAlgorithms()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Joined, EveryAlgorithm, ::testing::Values("datacom_known", "iqn_datacom_known"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Robust, EveryAlgorithm, ::testing::Values("sac_robust", "datacom_robust"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Following, EveryAlgorithm,
                         ::testing::Values("datacom_peak", "iqn_datacom_peak", "datacom_priced", "iqn_datacom_priced"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Normalised, EveryAlgorithm, ::testing::Values("sac_layer_norm", "datacom_layer_norm"),
                         [](const auto& info) { return info.param; });

TEST_P(EveryAlgorithm, ResumesBitIdenticallyFromItsState) {
  for (const char* kernels : {"fused", "tensor"}) {
    const AlgorithmConfig config = SmallConfig(GetParam(), 2, kernels);
    const auto straight = MakeAlgorithm(config), resumed = MakeAlgorithm(config);
    for (int u = 0; u < 3; ++u) straight->Update(RandomBatch(config, u));
    ApplyEpisodes(straight.get(), config, 1);
    resumed->Update(RandomBatch(config, 99));  // Load must overwrite this
    resumed->Load(straight->Save());
    for (int u = 3; u < 6; ++u) {
      straight->Update(RandomBatch(config, u));
      resumed->Update(RandomBatch(config, u));
      ApplyEpisodes(straight.get(), config, u);
      ApplyEpisodes(resumed.get(), config, u);
    }
    EXPECT_EQ(straight->Save(), resumed->Save()) << kernels;
    EXPECT_EQ(BitsOf(straight->GetStats()), BitsOf(resumed->GetStats()));
  }
}

TEST_P(EveryAlgorithm, GivesAMemberTheSameNumbersAloneAndInAPopulation) {
  const int members = 3;
  const AlgorithmConfig config = SmallConfig(GetParam(), members);
  const auto population = MakeAlgorithm(config);
  for (int m = 0; m < members; ++m) {
    AlgorithmConfig one = config;
    one.members = {config.members[m]};
    const auto solo = MakeAlgorithm(one);
    EXPECT_EQ(AllValues(*population, m), AllValues(*solo, 0)) << "initialisation of member " << m;
  }
  for (int u = 0; u < 4; ++u) population->Update(RandomBatch(config, u));
  for (int m = 0; m < members; ++m) {
    AlgorithmConfig one = config;
    one.members = {config.members[m]};
    const auto solo = MakeAlgorithm(one);
    for (int u = 0; u < 4; ++u) solo->Update(MemberOf(RandomBatch(config, u), members, m));
    EXPECT_EQ(AllValues(*population, m), AllValues(*solo, 0)) << "member " << m;
    EXPECT_EQ(population->GetStats()[m].critic_loss(), solo->GetStats()[0].critic_loss());
  }
}

TEST_P(EveryAlgorithm, AgreesBetweenFusedAndTensorKernels) {
  const AlgorithmConfig fused = SmallConfig(GetParam(), 3, "fused"), tensor = SmallConfig(GetParam(), 3, "tensor");
  const auto a = MakeAlgorithm(fused), b = MakeAlgorithm(tensor);
  for (int u = 0; u < 5; ++u) {
    Batch batch = RandomBatch(fused, u);
    batch.failure_weight[1] = 0;
    a->Update(batch);
    b->Update(batch);
  }
  EXPECT_EQ(Diverged(*a), (std::vector<bool>{0, 0, 0})) << "frozen members would agree, too";
  EXPECT_EQ(Diverged(*b), (std::vector<bool>{0, 0, 0}));
  for (int m = 0; m < 3; ++m) {
    const std::vector<float> x = AllValues(*a, m), y = AllValues(*b, m);
    size_t apart = 0;  // Adam turns the rounding of a vanishing gradient into a step, so a few entries may differ
    for (size_t i = 0; i < x.size(); ++i) apart += !(std::abs(x[i] - y[i]) <= 2e-5);
    EXPECT_LE(apart, x.size() / 200) << "of " << x.size() << ", member " << m;
    EXPECT_EQ(InfoOf(GetParam()).learns_delta, !std::isnan(a->GetStats()[m].delta()));
    EXPECT_FALSE(std::isnan(a->GetStats()[m].critic_loss()));
    EXPECT_FALSE(std::isnan(a->GetStats()[m].policy_loss()));
    for (const EpochStatistic& statistic : Statistics()) {
      const double x = statistic.Get(a->GetStats()[m]), y = statistic.Get(b->GetStats()[m]);
      EXPECT_TRUE(std::isnan(x) ? std::isnan(y) : std::abs(x - y) < 1e-4)
          << statistic.name() << ": " << x << " and " << y;
    }
  }
}

TEST_P(EveryAlgorithm, FreezesAMemberWithANaNInputAndContinuesWithTheOthers) {
  for (const char* kernels : {"fused", "tensor"}) {
    const AlgorithmConfig config = SmallConfig(GetParam(), 3, kernels);
    const auto algorithm = MakeAlgorithm(config);
    algorithm->Update(RandomBatch(config, 0));
    const std::vector<float> before = AllValues(*algorithm, 1), other = AllValues(*algorithm, 2);
    Batch poisoned = RandomBatch(config, 1);
    poisoned.observation[BatchRows(config) * config.obs_dim + 3] = std::numeric_limits<float>::quiet_NaN();
    algorithm->Update(poisoned);
    EXPECT_EQ(Diverged(*algorithm), (std::vector<bool>{0, 1, 0})) << kernels;
    EXPECT_EQ(AllValues(*algorithm, 1), before) << "the update that diverged must leave no trace";
    algorithm->Update(RandomBatch(config, 2));
    EXPECT_EQ(AllValues(*algorithm, 1), before);
    EXPECT_NE(AllValues(*algorithm, 2), other);
    EXPECT_TRUE(std::isfinite(algorithm->GetStats()[1].policy_loss())) << "statistics keep what was finite";
    const auto resumed = MakeAlgorithm(config);
    resumed->Load(algorithm->Save());
    EXPECT_EQ(Diverged(*resumed), (std::vector<bool>{0, 1, 0}));
  }
}

TEST_P(EveryAlgorithm, KeepsParametersFiniteUnderExtremeInputs) {
  for (float size : {1e4f, 1e15f, 1e30f}) {
    const AlgorithmConfig config = SmallConfig(GetParam(), 1);
    const auto algorithm = MakeAlgorithm(config);
    const std::vector<float> before = AllValues(*algorithm, 0);
    for (int u = 0; u < 5; ++u) {
      Batch batch = RandomBatch(config, u);
      for (auto* values : {&batch.observation, &batch.next_observation, &batch.reward, &batch.cost, &batch.now.z,
                           &batch.next.z, &batch.failure_z, &batch.failure_cost}) {
        for (float& value : *values) value *= size;
      }
      for (auto* values : {&batch.now.G, &batch.next.G, &batch.now.f, &batch.next.x_dot}) {
        for (double& value : *values) value *= size;
      }
      algorithm->Update(batch);
    }
    EXPECT_EQ(algorithm->GetStats()[0].diverged(), size == 1e30f) << size << ": its square overflows float32";
    const std::vector<float> after = AllValues(*algorithm, 0);
    for (float value : after) ASSERT_TRUE(std::isfinite(value)) << size;
    if (size < 1e30f) {
      EXPECT_NE(after, before) << size;
    }
  }
}

#ifdef DATACOM_COUNTS_HEAP
TEST_P(EveryAlgorithm, AllocatesNothingInAnUpdate) {
  AlgorithmConfig config = SmallConfig(GetParam(), 2);
  SetAllHidden({128, 128}, &config);
  config.learner.set_batch_size(64), config.learner.set_failure_batch_size(6);
  const auto algorithm = MakeAlgorithm(config);
  const Batch batch = RandomBatch(config, 0);
  algorithm->Update(batch);
  const long before = heap_requests;
  for (int u = 0; u < 3; ++u) algorithm->Update(batch);
  EXPECT_EQ(heap_requests, before);
  EXPECT_GT(before, 0) << "the counter does not count";
}
#endif

TEST_P(EveryAlgorithm, CountsAndResetsItsStatistics) {
  const AlgorithmConfig config = SmallConfig(GetParam(), 2);
  const auto algorithm = MakeAlgorithm(config);
  EXPECT_TRUE(std::isnan(algorithm->GetStats()[0].critic_loss())) << "no update yet";
  algorithm->Update(RandomBatch(config, 0));
  const double first = algorithm->GetStats()[0].critic_loss();
  algorithm->ResetStats();
  algorithm->Update(RandomBatch(config, 1));
  const double second = algorithm->GetStats()[0].critic_loss();
  const auto both = MakeAlgorithm(config);
  both->Update(RandomBatch(config, 0));
  both->Update(RandomBatch(config, 1));
  EXPECT_DOUBLE_EQ(both->GetStats()[0].critic_loss(), (first + second) / 2);
}

TEST_P(EveryAlgorithm, RecordsItsOwnStatisticsAndThoseOfNoOtherAlgorithm) {
  const AlgorithmConfig config = SmallConfig(GetParam(), 2);
  const auto algorithm = MakeAlgorithm(config);
  ApplyEpisodes(algorithm.get(), config, 1);
  for (int u = 0; u < 2; ++u) algorithm->Update(RandomBatch(config, u));
  const bool peak = GetParam().find("_peak") != std::string::npos;
  int compared = 0;
  for (const EpochStatistic& statistic : Statistics()) {
    if (statistic.about().used_by().empty() || !statistic.from_updates()) continue;
    const bool own = statistic.used_by(InfoOf(GetParam()).name) && (peak || statistic.name() != "delta_cost");
    for (const v1::MemberEpoch& member : algorithm->GetStats()) {
      EXPECT_EQ(!std::isnan(statistic.Get(member)), own) << statistic.name();
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

TEST_P(EveryAlgorithm, NamesWhatDoesNotFitInAStateAndChangesNothing) {
  const AlgorithmConfig config = SmallConfig(GetParam(), 2);
  const auto algorithm = MakeAlgorithm(config);
  algorithm->Update(RandomBatch(config, 0));
  const State good = algorithm->Save();
  const auto expect_refused = [&](const State& state, const std::string& entry) {
    try {
      algorithm->Load(state);
      ADD_FAILURE() << "accepted a state with a bad " << entry;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(std::string(error.what()), HasSubstr("'" + entry + "'"));
    }
    EXPECT_EQ(algorithm->Save(), good);
  };
  State missing = good, truncated = good, unknown = good;
  missing.erase("targets");
  truncated["adam.first"].pop_back();
  unknown["surprise"] = "x";
  expect_refused(missing, "targets");
  expect_refused(truncated, "adam.first");
  expect_refused(unknown, "surprise");
  expect_refused(MakeAlgorithm(SmallConfig(GetParam(), 3))->Save(), "signature");
}

TEST_P(EveryAlgorithm, PublishesWhatItsActingRuleDeclaresAndNothingElse) {
  const AlgorithmConfig config = SmallConfig(GetParam(), 2);
  const auto algorithm = MakeAlgorithm(config);
  const ActingParameters parameters = algorithm->GetActingParameters()[1];
  Snapshot snapshot;
  snapshot.acting_rule = InfoOf(GetParam()).acting_rule;
  snapshot.arrays = parameters.arrays;
  snapshot.scalars = parameters.scalars;
  const SnapshotDims dims{config.obs_dim, config.action_dim, config.q_dim + config.x_dim};
  const SnapshotForm form = ActingRuleForm(snapshot.acting_rule, dims, snapshot).value();
  const absl::Status status = SnapshotCheck::Make(form, snapshot).status();
  EXPECT_THAT(status, IsOk());
  for (const NamedArray& array : parameters.arrays) {
    const auto has = [&](const auto& part) { return array.name.rfind(part.net + ".", 0) == 0; };
    const auto is = [&](const SnapshotForm::Vector& vector) { return vector.name == array.name; };
    EXPECT_TRUE(std::any_of(form.nets.begin(), form.nets.end(), has) ||
                std::any_of(form.vectors.begin(), form.vectors.end(), is))
        << array.name;
    // A quantile's perceptron is made from several nets: see algorithms_test.cc.
    if (config.quantiles > 0 && array.name.rfind("constraint", 0) == 0) continue;
    EXPECT_EQ(array.values, GetArray(*algorithm, 1, array.name)) << array.name;
  }
  EXPECT_EQ(parameters.scalars.size(), form.scalars.size() + config.known.size());
  EXPECT_THAT(KnownConstraintNames(snapshot), ::testing::UnorderedElementsAreArray(config.known));
}

TEST(Algorithm, RefusesAnUnknownNameAndListsTheKnown) {
  AlgorithmConfig config = SmallConfig("sac", 1);
  config.algorithm = "reinforce";
  try {
    MakeAlgorithm(config);
    FAIL() << "accepted an unknown algorithm";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("\"reinforce\""), HasSubstr(absl::StrJoin(RegisteredAlgorithms(), ", "))));
  }
}

TEST(Algorithm, RegisteredAlgorithmsAreThoseOfTheSchema) {
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : Algorithms()) {
    names.push_back(info.name);
    const auto algorithm = MakeAlgorithm(SmallConfig(info.name, 1));
    EXPECT_EQ(!std::isnan(algorithm->GetStats()[0].delta()), info.learns_delta) << info.name;
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(RegisteredAlgorithms()));
}

TEST(Algorithm, RefusesBadConfigurationNamingTheField) {
  AlgorithmConfig config = SmallConfig("datacom", 1);
  config.q_dim = 0;
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
  config = SmallConfig("sac", 1);
  config.action_low = {0};
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
  config = SmallConfig("sac", 1);
  config.learner.set_kernels("abacus");
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
  config = SmallConfig("sac", 1);
  config.known = {"wall"};
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
  config = SmallConfig("datacom", 1);
  config.members[0].hyper.set_accepted_risk(1);
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
}

TEST(Delta, ConvertsItsBudgetToDiscountedCostUnlessTheAlgorithmsBudgetIsDiscounted) {
  AlgorithmConfig config = SmallConfig("datacom", 1);
  config.members[0].hyper.set_cost_budget(30), config.members[0].hyper.set_init_delta(1);
  const double discounted = DiscountedBudget(30, config.horizon, config.learner.discount());
  const std::vector<float> costs{0, static_cast<float>((discounted + 30) / 2)};
  const double delta = std::log1p(std::exp(1.0));
  const std::vector<double> risk{delta, delta};
  for (const char* algorithm : {"datacom", "iqn_datacom"}) {
    config.algorithm = algorithm;
    Delta of(config);
    ASSERT_TRUE(of.ApplyEpisode(0, 1, costs.data(), risk.data()));
    EXPECT_EQ(of.value(0) < delta, config.algorithm == "datacom") << algorithm;
  }
}

TEST(Initialisation, StaysInItsBoundsAndDependsOnlyOnSeeds) {
  AlgorithmConfig config = SmallConfig("datacom", 1);
  const auto algorithm = MakeAlgorithm(config);
  const std::pair<const char*, double> bounds[] = {{"actor.mean.0.weight", 1 / std::sqrt(5.0)},
                                                   {"critic.0.1.weight", std::sqrt(2.0) * std::sqrt(6.0 / (24 + 16))},
                                                   {"constraint.log_std.2.weight", std::sqrt(6.0 / (16 + 1))},
                                                   {"critic.1.1.bias", 1 / std::sqrt(24.0)}};
  for (const auto& bound : bounds) {
    double largest = 0;
    for (float value : GetArray(*algorithm, 0, bound.first))
      largest = testing::LargerOrNan(std::abs(static_cast<double>(value)), largest);
    EXPECT_LE(largest, bound.second * 1.000001) << bound.first;
    EXPECT_GT(largest, bound.second * 0.7) << bound.first;
  }
  EXPECT_EQ(GetArray(*algorithm, 0, "critic.0.0.weight"), GetArray(*algorithm, 0, "target_critic.0.0.weight"));
  EXPECT_NE(GetArray(*algorithm, 0, "critic.0.0.weight"), GetArray(*algorithm, 0, "critic.1.0.weight"));
  const auto safe_layer = MakeAlgorithm(SmallConfig("safe_layer_td3", 1));
  EXPECT_EQ(GetArray(*safe_layer, 0, "safety_model.2.bias"), (std::vector<float>{-1, -1}));
  const std::pair<const char*, double> layer_bounds[] = {
      {"actor.0.weight", 1 / std::sqrt(5.0)},
      {"actor.2.weight", 3e-3},
      {"critic.0.1.weight", 1 / std::sqrt(24.0)},
      {"critic.0.1.input_weight", 1 / std::sqrt(2.0)},
      {"critic.1.2.weight", 3e-3},
      {"critic.1.2.bias", 0.25},
      {"safety_model.1.weight", std::sqrt(2.0) / 5 * std::sqrt(6.0 / 32)}};
  for (const auto& bound : layer_bounds) {
    double largest = 0;
    for (float value : GetArray(*safe_layer, 0, bound.first))
      largest = testing::LargerOrNan(std::abs(static_cast<double>(value)), largest);
    EXPECT_LE(largest, bound.second * 1.000001) << bound.first;
    if (std::string(bound.first) == "critic.1.2.bias") continue;  // one number
    EXPECT_GT(largest, bound.second * 0.7) << bound.first;
  }
  const auto again = MakeAlgorithm(config);
  EXPECT_EQ(AllValues(*again, 0), AllValues(*algorithm, 0));
  config.members[0].seed += 1;
  EXPECT_NE(AllValues(*MakeAlgorithm(config), 0), AllValues(*algorithm, 0));
}

TEST(Pretraining, IsRefusedByTheOthersAndChangesNothing) {
  for (const std::string& name : RegisteredAlgorithms()) {
    if (Pretrains(InfoOf(name))) continue;
    const AlgorithmConfig config = SmallConfig(name, 1);
    const auto algorithm = MakeAlgorithm(config);
    const State before = algorithm->Save();
    try {
      algorithm->Pretrain(RandomBatch(config, 0));
      ADD_FAILURE() << name << " was pre-trained";
    } catch (const std::invalid_argument& error) {
      EXPECT_STREQ(error.what(), "this algorithm cannot be pre-trained");
    }
    EXPECT_EQ(algorithm->Save(), before);
  }
}

// Pre-training must equal an update in which policy, temperature and multiplier have learning rate 0.
class EveryPretrained : public ::testing::TestWithParam<std::string> {
 protected:
  static bool OfThePolicy(const std::string& array) {
    return array.rfind("actor.", 0) == 0 || array == "log_alpha" || array == "multiplier_raw" || array == "delta_raw";
  }
};
INSTANTIATE_TEST_SUITE_P(All, EveryPretrained, ::testing::ValuesIn(PretrainedNames()),
                         [](const auto& info) { return info.param; });

TEST_P(EveryPretrained, FitsValuesLikeAnUpdateAndDoesNotChangeThePolicy) {
  for (const char* kernels : {"fused", "tensor"}) {
    AlgorithmConfig config = SmallConfig(GetParam(), 2, kernels);
    for (MemberConfig& member : config.members) {
      member.hyper.set_actor_lr(0), member.hyper.set_alpha_lr(0), member.hyper.set_multiplier_lr(0);
    }
    const auto updated = MakeAlgorithm(config), pretrained = MakeAlgorithm(config), fresh = MakeAlgorithm(config);
    for (int u = 0; u < 4; ++u) {
      pretrained->Pretrain(RandomBatch(config, u));
      updated->Update(RandomBatch(config, u));
    }
    for (int member = 0; member < 2; ++member) {
      for (const std::string& name : ArrayNames(*pretrained)) {
        const std::vector<float> values = GetArray(*pretrained, member, name);
        const std::vector<float> wanted = GetArray(OfThePolicy(name) ? *fresh : *updated, member, name);
        for (size_t i = 0; i < values.size(); ++i) {
          ASSERT_NEAR(values[i], wanted[i], OfThePolicy(name) ? 0 : 2e-6) << kernels << " " << name << "[" << i << "]";
        }
        if (!OfThePolicy(name)) {
          EXPECT_NE(values, GetArray(*fresh, member, name)) << name << " was not trained";
        }
      }
      const Stats stats = pretrained->GetStats(), before = fresh->GetStats();
      EXPECT_TRUE(std::isfinite(stats[member].critic_loss()));
      EXPECT_TRUE(std::isnan(stats[member].policy_loss()));
      for (const auto field : {&v1::MemberEpoch::delta, &v1::MemberEpoch::alpha}) {
        const double after = (stats[member].*field)(), untouched = (before[member].*field)();
        EXPECT_TRUE(after == untouched || (std::isnan(after) && std::isnan(untouched))) << after;
      }
    }
  }
}

TEST_P(EveryPretrained, DoesNotChangeTheOptimisersOfThePolicy) {
  const AlgorithmConfig config = SmallConfig(GetParam(), 1);
  const auto pretrained = MakeAlgorithm(config);
  pretrained->Pretrain(RandomBatch(config, 1));
  const State state = pretrained->Save();
  double steps = -1;
  std::vector<std::string> optimizers{"steps.actor", "steps.alpha"};
  if (GetParam() == "lag_sac" || GetParam() == "wcsac") optimizers.push_back("steps.multiplier");
  for (const std::string& optimizer : optimizers) {
    std::memcpy(&steps, state.at(optimizer).data(), sizeof steps);
    EXPECT_EQ(steps, 0) << optimizer;
  }
  std::memcpy(&steps, state.at("steps.critic").data(), sizeof steps);
  EXPECT_EQ(steps, 1);
}

TEST_P(EveryPretrained, GivesAMemberTheSameNumbersAloneAndInAPopulation) {
  AlgorithmConfig together = SmallConfig(GetParam(), 3), alone = together;
  alone.members = {together.members[1]};
  const auto population = MakeAlgorithm(together), single = MakeAlgorithm(alone);
  for (int u = 0; u < 3; ++u) {
    const Batch batch = RandomBatch(together, u);
    population->Pretrain(batch);
    single->Pretrain(MemberOf(batch, 3, 1));
  }
  EXPECT_EQ(AllValues(*population, 1), AllValues(*single, 0));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
