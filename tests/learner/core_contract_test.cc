// What every algorithm promises (learner/algorithms/algorithm.h), for all registered ones.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "common/safety/risk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/algorithms/delta.h"
#include "tests/learner/core_testing.h"

// Counts heap requests of this process; operator new ends here too.
namespace {
long heap_requests = 0;
}
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
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
INSTANTIATE_TEST_SUITE_P(All, EveryAlgorithm, ::testing::ValuesIn(AlgorithmNames()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Joined, EveryAlgorithm, ::testing::Values("datacom_known", "iqn_datacom_known"),
                         [](const auto& info) { return info.param; });

bool FeasibilityNets(const std::string& algorithm) { return algorithm.find("datacom") != std::string::npos; }

bool SameNumbers(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  }
  return true;
}

void ApplyEpisodes(Algorithm* algorithm, const AlgorithmConfig& config, uint64_t seed) {
  NamedStream stream(seed);
  const int length = 30;
  std::vector<float> z((length + 1) * (config.q_dim + config.x_dim)), costs(length + 1);
  for (float& value : z) value = static_cast<float>(stream.Uniform(-2, 2));
  for (float& value : costs) value = static_cast<float>(stream.Uniform(-2, 1));
  costs[0] = 0;
  for (size_t m = 0; m < config.members.size(); ++m) {
    algorithm->ApplyEpisode(static_cast<int>(m), length, z.data(), costs.data());
  }
}

TEST_P(EveryAlgorithm, ResumesBitIdenticallyFromItsState) {
  for (const char* kernels : {"fused", "tensor"}) {
    const AlgorithmConfig config = SmallConfig(GetParam(), 2, kernels);
    const auto straight = MakeAlgorithm(config), resumed = MakeAlgorithm(config);
    for (int u = 0; u < 3; ++u) straight->Update(RandomBatch(config, u));
    ApplyEpisodes(straight.get(), config, 1);
    resumed->Update(RandomBatch(config, 99));  // something to overwrite
    resumed->Load(straight->Save());
    for (int u = 3; u < 6; ++u) {
      straight->Update(RandomBatch(config, u));
      resumed->Update(RandomBatch(config, u));
      ApplyEpisodes(straight.get(), config, u);
      ApplyEpisodes(resumed.get(), config, u);
    }
    EXPECT_EQ(straight->Save(), resumed->Save()) << kernels;
    const Stats a = straight->GetStats(), b = resumed->GetStats();
    EXPECT_TRUE(SameNumbers(a.policy_loss, b.policy_loss));
    EXPECT_TRUE(SameNumbers(a.constraint_loss, b.constraint_loss));
    EXPECT_TRUE(SameNumbers(a.delta, b.delta));
    EXPECT_TRUE(SameNumbers(a.multiplier, b.multiplier));
    EXPECT_EQ(a.delta_steps, b.delta_steps);
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
    EXPECT_EQ(population->GetStats().critic_loss[m], solo->GetStats().critic_loss[0]);
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
  for (int m = 0; m < 3; ++m) {
    const std::vector<float> x = AllValues(*a, m), y = AllValues(*b, m);
    size_t apart = 0;  // Adam turns rounding of a vanishing gradient into a step: a few entries may differ
    for (size_t i = 0; i < x.size(); ++i) apart += std::abs(x[i] - y[i]) > 2e-5;
    EXPECT_LE(apart, x.size() / 200) << "of " << x.size() << ", member " << m;
    EXPECT_NEAR(a->GetStats().critic_loss[m], b->GetStats().critic_loss[m], 1e-4);
    EXPECT_NEAR(a->GetStats().policy_loss[m], b->GetStats().policy_loss[m], 1e-4);
    EXPECT_EQ(FeasibilityNets(GetParam()), !std::isnan(a->GetStats().delta[m]));
    for (const auto statistic : {&Stats::entropy, &Stats::constraint_loss, &Stats::constraint_mean}) {
      const double x = (a->GetStats().*statistic)[m], y = (b->GetStats().*statistic)[m];
      EXPECT_TRUE(std::isnan(x) ? std::isnan(y) : std::abs(x - y) < 1e-4) << x << " and " << y;
    }
  }
}

TEST_P(EveryAlgorithm, FreezesAMemberWithANaNInputAndGoesOnWithTheOthers) {
  for (const char* kernels : {"fused", "tensor"}) {
    const AlgorithmConfig config = SmallConfig(GetParam(), 3, kernels);
    const auto algorithm = MakeAlgorithm(config);
    algorithm->Update(RandomBatch(config, 0));
    const std::vector<float> before = AllValues(*algorithm, 1), other = AllValues(*algorithm, 2);
    Batch poisoned = RandomBatch(config, 1);
    poisoned.observation[config.batch_size * config.obs_dim + 3] = std::numeric_limits<float>::quiet_NaN();
    algorithm->Update(poisoned);
    EXPECT_EQ(algorithm->GetStats().diverged, (std::vector<uint8_t>{0, 1, 0})) << kernels;
    EXPECT_EQ(AllValues(*algorithm, 1), before) << "nothing of the update that diverged is kept";
    algorithm->Update(RandomBatch(config, 2));
    EXPECT_EQ(AllValues(*algorithm, 1), before);
    EXPECT_NE(AllValues(*algorithm, 2), other);
    EXPECT_TRUE(std::isfinite(algorithm->GetStats().policy_loss[1])) << "statistics keep what was finite";
    const auto resumed = MakeAlgorithm(config);
    resumed->Load(algorithm->Save());
    EXPECT_EQ(resumed->GetStats().diverged, (std::vector<uint8_t>{0, 1, 0}));
  }
}

TEST_P(EveryAlgorithm, KeepsParametersFiniteUnderExtremeInputs) {
  for (float size : {1e4f, 1e15f, 1e30f}) {
    const AlgorithmConfig config = SmallConfig(GetParam(), 1);
    const auto algorithm = MakeAlgorithm(config);
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
    for (float value : AllValues(*algorithm, 0)) ASSERT_TRUE(std::isfinite(value)) << size;
  }
}

#ifdef DATACOM_COUNTS_HEAP
TEST_P(EveryAlgorithm, AllocatesNothingInAnUpdate) {
  AlgorithmConfig config = SmallConfig(GetParam(), 2);
  config.actor_hidden = config.critic_hidden = config.constraint_hidden = {128, 128};
  config.batch_size = 64, config.failure_batch_size = 6;
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
  EXPECT_TRUE(std::isnan(algorithm->GetStats().critic_loss[0])) << "no update yet";
  algorithm->Update(RandomBatch(config, 0));
  const double first = algorithm->GetStats().critic_loss[0];
  algorithm->ResetStats();
  algorithm->Update(RandomBatch(config, 1));
  const double second = algorithm->GetStats().critic_loss[0];
  const auto both = MakeAlgorithm(config);
  both->Update(RandomBatch(config, 0));
  both->Update(RandomBatch(config, 1));
  EXPECT_DOUBLE_EQ(both->GetStats().critic_loss[0], (first + second) / 2);
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

TEST_P(EveryAlgorithm, GivesItsActingRuleTheNetsItNeeds) {
  const AlgorithmConfig config = SmallConfig(GetParam(), 2);
  const auto algorithm = MakeAlgorithm(config);
  const ActingParameters parameters = algorithm->GetActingParameters(1);
  const bool constrained = algorithm->acting_rule() == "safe_map";
  const bool quantile = config.quantiles > 0;  // one perceptron made from several nets: IqnDatacom's own test
  const bool deterministic = algorithm->acting_rule() == "safe_layer", barrier = algorithm->acting_rule() == "cbf_qp";
  EXPECT_EQ(parameters.arrays.size(), quantile ? 20u : constrained ? 24u : barrier ? 18u : 12u);
  for (const ActingParameters::Array& array : parameters.arrays) {
    if (!quantile || array.name.rfind("actor", 0) == 0) {
      EXPECT_EQ(array.values, GetArray(*algorithm, 1, array.name));
    }
    size_t size = 1;
    for (uint32_t n : array.shape) size *= n;
    EXPECT_EQ(array.values.size(), size) << array.name;
  }
  EXPECT_EQ(parameters.arrays[0].name, deterministic ? "actor.0.weight" : "actor.mean.0.weight");
  EXPECT_EQ(parameters.arrays[0].shape, (std::vector<uint32_t>{5, 16}));
  const bool mapped = constrained || algorithm->acting_rule().rfind("atacom", 0) == 0;
  EXPECT_EQ(parameters.scalars.count("delta"), constrained ? 1u : 0u);
  EXPECT_EQ(parameters.scalars.count("atacom_gain"), mapped ? 1u : 0u);
  EXPECT_EQ(parameters.scalars.count("slack_beta"), mapped ? 1u : 0u);
  EXPECT_EQ(parameters.scalars.count("risk_margin"), constrained && !quantile ? 1u : 0u);
  EXPECT_EQ(parameters.scalars.count("exploration_noise"), deterministic ? 1u : 0u);
  EXPECT_EQ(parameters.scalars.count("projection_threshold"), deterministic ? 1u : 0u);
  EXPECT_EQ(parameters.scalars.count("barrier_decay"), barrier ? 1u : 0u);
  EXPECT_EQ(parameters.scalars.count("relaxation_penalty"), barrier ? 1u : 0u);
  for (const char* row : {"wall", "floor", "speed"}) {
    EXPECT_EQ(parameters.scalars.count(std::string("known_constraint.") + row), config.known.empty() ? 0u : 1u);
  }
}

TEST(Algorithm, RefusesAnUnknownNameAndListsTheKnown) {
  try {
    MakeAlgorithm(SmallConfig("reinforce", 1));
    FAIL() << "made an unknown algorithm";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(
        error.what(),
        AllOf(HasSubstr("'reinforce'"),
              HasSubstr("datacom, iqn_datacom, atacom_fi, atacom_nfi, sac, lag_sac, wcsac, cbf_sac, safe_layer_td3")));
  }
}

TEST(Algorithm, RefusesBadConfigurationNamingTheField) {
  AlgorithmConfig config = SmallConfig("datacom", 1);
  config.q_dim = 0;
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
  config = SmallConfig("sac", 1);
  config.action_low = {0};
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
  config = SmallConfig("sac", 1);
  config.kernels = "abacus";
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
  config = SmallConfig("sac", 1);
  config.known = {"wall"};
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
  config = SmallConfig("datacom", 1);
  config.members[0].accepted_risk = 1;
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
}

TEST(Datacom, CountsNoFailureRowsWhereAMemberHasNone) {
  AlgorithmConfig with = SmallConfig("datacom", 1), without = with;
  without.failure_batch_size = 0;
  Batch batch = RandomBatch(with, 0);
  batch.failure_weight[0] = 0;
  const auto a = MakeAlgorithm(with), b = MakeAlgorithm(without);
  a->Update(batch);
  b->Update(batch);
  EXPECT_DOUBLE_EQ(a->GetStats().constraint_loss[0], b->GetStats().constraint_loss[0]);
  const auto x = GetArray(*a, 0, "grad.constraint.mean.1.weight"), y = GetArray(*b, 0, "grad.constraint.mean.1.weight");
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-7);
}

// A row the action cannot influence takes no part in the map: what is joined must then change nothing but rounding,
// whichever way the map is computed.
TEST(Datacom, LearnsTheSameWhereWhatIsJoinedSaysNothing) {
  for (const std::string kernels : {"fused", "tensor"}) {
    const AlgorithmConfig plain = SmallConfig("datacom", 2, kernels), joined = SmallConfig("datacom_known", 2, kernels);
    const auto a = MakeAlgorithm(plain), b = MakeAlgorithm(joined);
    for (int u = 0; u < 4; ++u) {
      const Batch batch = RandomBatch(plain, u);
      Batch same = RandomBatch(joined, u);
      same.now.f = batch.now.f, same.now.G = batch.now.G, same.now.x_dot = batch.now.x_dot;
      same.next.f = batch.next.f, same.next.G = batch.next.G, same.next.x_dot = batch.next.x_dot;
      for (auto* known : {&same.now.known, &same.next.known}) {
        for (size_t i = 0; i < known->size(); ++i) (*known)[i] = i % 4 == 0 ? -0.1 * (i % 7) : i % 4 == 1 ? 2 : 0;
      }
      a->Update(batch);
      b->Update(same);
    }
    for (int m = 0; m < 2; ++m) {
      const std::vector<float> x = AllValues(*a, m), y = AllValues(*b, m);
      size_t apart = 0;  // as between fused and tensor kernels
      for (size_t i = 0; i < x.size(); ++i) apart += std::abs(x[i] - y[i]) > 2e-5;
      EXPECT_LE(apart, x.size() / 200) << kernels << ", member " << m;
      EXPECT_NEAR(a->GetStats().entropy[m], b->GetStats().entropy[m], 1e-5);
      EXPECT_NEAR(a->GetStats().critic_loss[m], b->GetStats().critic_loss[m], 1e-5);
    }
  }
}

TEST(Datacom, HearsOfActiveKnownRows) {
  const AlgorithmConfig config = SmallConfig("datacom_known", 1);
  Batch batch = RandomBatch(config, 0), active = batch;
  for (auto* known : {&active.now.known, &active.next.known}) {
    for (size_t i = 0; i < known->size(); i += 4) (*known)[i] = 1;
  }
  for (auto* known : {&batch.now.known, &batch.next.known}) {
    for (size_t i = 0; i < known->size(); i += 4) (*known)[i] = -5;
  }
  const auto a = MakeAlgorithm(config), b = MakeAlgorithm(config);
  a->Update(batch);
  b->Update(active);
  EXPECT_NE(GetArray(*a, 0, "grad.actor.mean.1.weight"), GetArray(*b, 0, "grad.actor.mean.1.weight"));
  EXPECT_NE(GetArray(*a, 0, "grad.critic.0.1.weight"), GetArray(*b, 0, "grad.critic.0.1.weight"));
  EXPECT_EQ(GetArray(*a, 0, "grad.constraint.mean.1.weight"), GetArray(*b, 0, "grad.constraint.mean.1.weight"))
      << "the learned value is of costs alone";
  EXPECT_LT(a->GetStats().entropy[0] - b->GetStats().entropy[0], 2.0 + 1e-6) << "the correction stays clamped";
  EXPECT_GT(a->GetStats().entropy[0], b->GetStats().entropy[0]) << "less of the tangent space is left";
}

TEST(Datacom, KeepsAFixedDeltaExactly) {
  AlgorithmConfig config = SmallConfig("datacom", 2);
  config.members[0].delta_fixed = true;
  config.members[0].init_delta = 0.3;
  const auto algorithm = MakeAlgorithm(config);
  ApplyEpisodes(algorithm.get(), config, 1);
  const Stats stats = algorithm->GetStats();
  EXPECT_EQ(stats.delta[0], 0.3);
  EXPECT_EQ(stats.delta_steps, (std::vector<uint64_t>{0, 1}));
  EXPECT_NE(stats.delta[1], std::log1p(std::exp(1.0)));
  EXPECT_EQ(algorithm->GetActingParameters(0).scalars.at("delta"), 0.3);
}

TEST(Datacom, StartsDeltaAtTheSoftplusOfItsRawValue) {
  AlgorithmConfig config = SmallConfig("datacom", 3);
  config.members[0].init_delta = 6, config.members[1].init_delta = 0, config.members[2].init_delta = 3;
  const Stats stats = MakeAlgorithm(config)->GetStats();
  EXPECT_NEAR(stats.delta[0], 6.0025, 1e-4);  // algorithms.md 5.1
  EXPECT_NEAR(stats.delta[1], 0.7444, 1e-4);
  EXPECT_NEAR(stats.delta[2], 3.0486, 1e-4);
}

// What the actor gets is one perceptron; the network at its level, on the mean of a batch, is what the learner reports.
TEST(IqnDatacom, GivesAPerceptronThatIsTheNetworkAtItsLevel) {
  for (const double accepted_risk : {0.1, 0.9}) {
    AlgorithmConfig config = SmallConfig("iqn_datacom", 2);
    config.members[1].accepted_risk = accepted_risk;
    config.members[1].delta_fixed = true, config.members[1].init_delta = 0.25;
    const auto algorithm = MakeAlgorithm(config);
    std::vector<ActingParameters::Array> arrays;
    for (const ActingParameters::Array& array : algorithm->GetActingParameters(1).arrays) {
      if (array.name.rfind("constraint.value.", 0) == 0) arrays.push_back(array);
    }
    ASSERT_EQ(arrays.size(), 8u);
    const Batch batch = RandomBatch(config, 0);
    const size_t z_dim = config.q_dim + config.x_dim, rows = config.batch_size;
    double sum = 0;
    for (size_t r = 0; r < rows; ++r) {
      const auto z = batch.now.z.begin() + static_cast<int64_t>((rows + r) * z_dim);
      std::vector<double> x(z, z + static_cast<int64_t>(z_dim));
      for (size_t layer = 0; layer < 4; ++layer) {
        const std::vector<float>&weight = arrays[2 * layer].values, &bias = arrays[2 * layer + 1].values;
        std::vector<double> y(bias.begin(), bias.end());
        for (size_t i = 0; i < x.size(); ++i) {
          for (size_t j = 0; j < y.size(); ++j) y[j] += x[i] * weight[i * y.size() + j];
        }
        for (double& value : y) value = layer < 3 ? std::max(value, 0.0) : std::log1p(std::exp(value));
        x = y;
      }
      sum += x[0] - 0.25;
    }
    algorithm->Update(batch);  // reports what it found before its steps
    EXPECT_NEAR(algorithm->GetStats().constraint_mean[1], sum / static_cast<double>(rows), 1e-5) << accepted_risk;
  }
}

// The first two updates before the warm-up's end move the safety model alone; then every second moves the actor.
TEST(SafeLayerTd3, MovesThePolicyAfterItsWarmupAndTheActorAtEverySecondUpdate) {
  for (const char* kernels : {"fused", "tensor"}) {
    AlgorithmConfig config = SmallConfig("safe_layer_td3", 2, kernels);
    config.policy_warmup = 2, config.policy_delay = 2;
    std::unique_ptr<Algorithm> algorithm = MakeAlgorithm(config);
    for (int u = 0; u < 6; ++u) {
      if (u == 3) {  // the count of updates is part of the state
        const State state = algorithm->Save();
        algorithm = MakeAlgorithm(config);
        algorithm->Load(state);
      }
      std::map<std::string, std::vector<float>> before;
      for (const std::string& name : ArrayNames(*algorithm)) before[name] = GetArray(*algorithm, 1, name);
      algorithm->Update(RandomBatch(config, u));
      const auto moved = [&](const std::string& name) { return GetArray(*algorithm, 1, name) != before.at(name); };
      EXPECT_TRUE(moved("safety_model.0.weight")) << u;
      EXPECT_EQ(moved("critic.1.1.input_weight"), u >= 2) << u;
      EXPECT_EQ(moved("target_critic.0.2.weight"), u >= 2) << u;
      EXPECT_EQ(moved("actor.1.weight"), u == 2 || u == 4) << u;
      EXPECT_EQ(moved("target_actor.1.weight"), u >= 2) << u << ": targets follow without a step of the actor, too";
    }
  }
}

TEST(CbfSac, RefusesAConstraintStateThatTheActionDoesNotControlAlone) {
  AlgorithmConfig config = SmallConfig("cbf_sac", 1);
  config.x_dim = 5;
  try {
    MakeAlgorithm(config);
    FAIL() << "made a barrier of what no action controls";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cbf_sac"), HasSubstr("5")));
  }
}

// SAC's part of it is SAC: the barrier changes no other number.
TEST(CbfSac, LearnsItsPolicyAsSacDoes) {
  AlgorithmConfig config = SmallConfig("cbf_sac", 1);
  const auto with = MakeAlgorithm(config);
  config.algorithm = "sac";
  const auto without = MakeAlgorithm(config);
  for (int u = 0; u < 3; ++u) {
    with->Update(RandomBatch(config, u));
    without->Update(RandomBatch(config, u));
  }
  for (const std::string& name : ArrayNames(*without)) {
    EXPECT_EQ(GetArray(*with, 0, name), GetArray(*without, 0, name)) << name;
  }
  EXPECT_EQ(GetArray(*MakeAlgorithm(SmallConfig("cbf_sac", 1)), 0, "barrier.2.bias"), std::vector<float>{-1});
}

TEST(SafeLayerTd3, RefusesCriticsWithoutASecondLayerForTheAction) {
  AlgorithmConfig config = SmallConfig("safe_layer_td3", 1);
  config.critic_hidden = {16};
  try {
    MakeAlgorithm(config);
    FAIL() << "made critics of one layer";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("critic.0"), HasSubstr("at least two hidden layers, not 1")));
  }
}

TEST(IqnDatacom, NeedsLevels) {
  AlgorithmConfig config = SmallConfig("iqn_datacom", 1);
  config.quantiles = 0;
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
}

// Every state of the episode is over the discounted budget and within the undiscounted one: delta shrinks, or grows.
TEST(Delta, HoldsItsBudgetDiscountedOrNot) {
  AlgorithmConfig config = SmallConfig("iqn_datacom", 1);
  config.members[0].cost_budget = 30, config.members[0].init_delta = 1;
  const double discounted = DiscountedBudget(30, config.horizon, config.discount);
  const std::vector<float> costs{0, static_cast<float>((discounted + 30) / 2)};
  const double delta = std::log1p(std::exp(1.0));
  const std::vector<double> risk{delta, delta};
  for (const bool discount : {true, false}) {
    Delta of(config, discount);
    ASSERT_TRUE(of.ApplyEpisode(0, 1, costs.data(), risk.data()));
    EXPECT_EQ(of.value(0) < delta, discount);
  }
}

TEST(Initialisation, StaysInItsBoundsAndDependsOnSeedsAlone) {
  AlgorithmConfig config = SmallConfig("datacom", 1);
  const auto algorithm = MakeAlgorithm(config);
  const std::pair<const char*, double> bounds[] = {{"actor.mean.0.weight", 1 / std::sqrt(5.0)},
                                                   {"critic.0.1.weight", std::sqrt(2.0) * std::sqrt(6.0 / (24 + 16))},
                                                   {"constraint.log_std.2.weight", std::sqrt(6.0 / (16 + 1))},
                                                   {"critic.1.1.bias", 1 / std::sqrt(24.0)}};
  for (const auto& bound : bounds) {
    double largest = 0;
    for (float value : GetArray(*algorithm, 0, bound.first))
      largest = std::max(largest, std::abs(static_cast<double>(value)));
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
      largest = std::max(largest, std::abs(static_cast<double>(value)));
    EXPECT_LE(largest, bound.second * 1.000001) << bound.first;
    if (std::string(bound.first) == "critic.1.2.bias") continue;  // one number
    EXPECT_GT(largest, bound.second * 0.7) << bound.first;
  }
  const auto again = MakeAlgorithm(config);
  EXPECT_EQ(AllValues(*again, 0), AllValues(*algorithm, 0));
  config.members[0].seed += 1;
  EXPECT_NE(AllValues(*MakeAlgorithm(config), 0), AllValues(*algorithm, 0));
}

}  // namespace
}  // namespace datacom::learner
