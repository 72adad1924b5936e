// Behaviour of single algorithms, beyond the contract of all (contract_test.cc).
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/algorithms/algorithm.h"
#include "tests/learner/algorithms/testing.h"

namespace datacom::learner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Datacom, CountsNoFailureRowsWhereAMemberHasNone) {
  AlgorithmConfig with = SmallConfig("datacom", 1), without = with;
  without.learner.set_failure_batch_size(0);
  Batch batch = RandomBatch(with, 0);
  batch.failure_weight[0] = 0;
  const auto a = MakeAlgorithm(with), b = MakeAlgorithm(without);
  a->Update(batch);
  b->Update(batch);
  EXPECT_DOUBLE_EQ(a->GetStats()[0].constraint_loss(), b->GetStats()[0].constraint_loss());
  const auto x = GetArray(*a, 0, "grad.constraint.mean.1.weight"), y = GetArray(*b, 0, "grad.constraint.mean.1.weight");
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-7);
}

// A row that the action cannot influence takes no part in the map. Joining such rows must change nothing but rounding,
// for both forms of the map.
TEST(Datacom, LearnsTheSameWithJoinedRowsThatTheActionCannotInfluence) {
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
      size_t apart = 0;  // Adam amplifies rounding, as between fused and tensor kernels
      for (size_t i = 0; i < x.size(); ++i) apart += !(std::abs(x[i] - y[i]) <= 2e-5);
      EXPECT_LE(apart, x.size() / 200) << kernels << ", member " << m;
      EXPECT_NEAR(a->GetStats()[m].entropy(), b->GetStats()[m].entropy(), 1e-5);
      EXPECT_NEAR(a->GetStats()[m].critic_loss(), b->GetStats()[m].critic_loss(), 1e-5);
    }
  }
}

TEST(Datacom, ActiveKnownRowsChangeActorAndCriticsOnly) {
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
      << "the learned value depends on costs only";
  EXPECT_LT(a->GetStats()[0].entropy() - b->GetStats()[0].entropy(), 2.0 + 1e-6) << "the correction stays clamped";
  EXPECT_GT(a->GetStats()[0].entropy(), b->GetStats()[0].entropy()) << "active rows leave less of the tangent space";
}

// The critics start near 0, so a floor of 1,000 makes their error about 1,000, and so does a ceiling of -1,000. The
// members differ only in these.
TEST(EveryAlgorithm, NoCriticTargetIsOutsideOfTheRangeOfReturns) {
  for (const std::string& name : RegisteredAlgorithms()) {
    if (IsOnPolicy(name)) continue;  // their targets have no range
    AlgorithmConfig config = SmallConfig(name, 3);
    config.policy_warmup = 0;
    config.members[1].hyper.set_return_floor(1000);
    config.members[2].hyper.set_return_ceiling(-1000);
    const auto algorithm = MakeAlgorithm(config);
    algorithm->Update(RandomBatch(config, 1));
    const Stats stats = algorithm->GetStats();
    EXPECT_LT(stats[0].critic_loss(), 1e4) << name;
    EXPECT_NEAR(stats[1].critic_loss(), 1e6, 2e5) << name;
    EXPECT_NEAR(stats[2].critic_loss(), 1e6, 2e5) << name;
  }
}

// The mean and standard deviation of each column of the first batches, as docs/algorithms.md 1.6 says.
struct Columns {
  std::vector<double> mean, deviation;
  Columns(const std::vector<Batch>& batches, int cols) {
    for (int c = 0; c < cols; ++c) {
      std::vector<double> all;
      for (const Batch& batch : batches) {
        for (size_t i = c; i < batch.observation.size(); i += cols) all.push_back(batch.observation[i]);
      }
      double sum = 0, squares = 0;
      for (const double value : all) sum += value;
      mean.push_back(sum / static_cast<double>(all.size()));
      for (const double value : all) squares += (value - mean.back()) * (value - mean.back());
      deviation.push_back(std::sqrt(squares / static_cast<double>(all.size() - 1)));
    }
  }
};

TEST(SoftActorCritic, NormalisesAnUpdatesObservationsWithThoseOfTheUpdatesBefore) {
  for (const std::string name : {"sac", "datacom"}) {
    AlgorithmConfig plain = SmallConfig(name, 1), normalised = plain;
    normalised.learner.set_normalise_observations(true);
    const auto expected = MakeAlgorithm(plain), actual = MakeAlgorithm(normalised);
    std::vector<Batch> batches;
    for (int update = 0; update < 4; ++update) {
      Batch batch = RandomBatch(plain, update);
      for (size_t i = 0; i < batch.observation.size(); i += 5) batch.observation[i] = 50 + 20 * batch.observation[i];
      for (size_t i = 0; i < batch.observation.size(); i += 5)
        batch.next_observation[i] = 50 + batch.next_observation[i];
      actual->Update(batch);
      Batch by_hand = batch;
      if (update > 0) {
        const Columns columns(batches, 5);
        for (auto* values : {&by_hand.observation, &by_hand.next_observation}) {
          for (size_t i = 0; i < values->size(); ++i) {
            (*values)[i] = static_cast<float>(((*values)[i] - columns.mean[i % 5]) / columns.deviation[i % 5]);
          }
        }
      }
      expected->Update(by_hand);
      batches.push_back(batch);
    }
    for (const std::string array : {"actor.mean.0.weight", "actor.log_std.1.weight", "critic.0.0.weight",
                                    "critic.1.1.weight", "target_critic.0.0.weight"}) {
      const std::vector<float> a = GetArray(*expected, 0, array), b = GetArray(*actual, 0, array);
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-5) << name << " " << array << " " << i;
    }
    const Columns columns(batches, 5);
    for (int c = 0; c < 5; ++c) {
      EXPECT_NEAR(GetArray(*actual, 0, "observation.mean")[c], columns.mean[c], 1e-4);
      EXPECT_NEAR(GetArray(*actual, 0, "observation.std")[c], columns.deviation[c], 1e-4);
    }
  }
}

// Outputs of the first layer, before its activation.
std::vector<double> FirstLayer(const std::vector<double>& x, const std::vector<float>& weight,
                               const std::vector<float>& bias) {
  std::vector<double> out(bias.begin(), bias.end());
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < out.size(); ++j) out[j] += x[i] * weight[i * out.size() + j];
  }
  return out;
}

TEST(SoftActorCritic, PublishesAPolicyOfRawObservationsThatActsAsTheOneOfNormalisedOnes) {
  AlgorithmConfig config = SmallConfig("datacom", 2);
  config.learner.set_normalise_observations(true);
  const auto algorithm = MakeAlgorithm(config);
  for (int update = 0; update < 3; ++update) {
    Batch batch = RandomBatch(config, update);
    for (float& value : batch.observation) value = 7 + 3 * value;
    algorithm->Update(batch);
  }
  const ActingParameters published = algorithm->GetActingParameters()[1];
  const auto array = [&](const std::string& name) {
    for (const NamedArray& each : published.arrays) {
      if (each.name == name) return each.values;
    }
    throw std::invalid_argument(name);
  };
  const std::vector<float> mean = GetArray(*algorithm, 1, "observation.mean");
  const std::vector<float> deviation = GetArray(*algorithm, 1, "observation.std");
  EXPECT_NEAR(mean[0], 7, 2);
  const std::vector<double> raw{1, 20, -3, 8, 7};
  std::vector<double> normalised;
  for (size_t i = 0; i < raw.size(); ++i) normalised.push_back((raw[i] - mean[i]) / deviation[i]);
  for (const std::string net : {"actor.mean.", "actor.log_std."}) {
    const auto own = [&](const std::string& name) { return GetArray(*algorithm, 1, net + name); };
    const auto acts = FirstLayer(raw, array(net + "0.weight"), array(net + "0.bias"));
    const auto learns = FirstLayer(normalised, own("0.weight"), own("0.bias"));
    for (size_t i = 0; i < acts.size(); ++i) EXPECT_NEAR(acts[i], learns[i], 1e-5) << net << i;
    EXPECT_EQ(array(net + "1.weight"), own("1.weight"));
    EXPECT_EQ(array(net + "1.bias"), own("1.bias"));
  }
}

TEST(SoftActorCritic, StartsWithTheDeviationAndTheTemperatureThatAreAsked) {
  AlgorithmConfig config = SmallConfig("sac", 1);
  config.network.set_initial_log_std(-1.5);
  config.learner.set_initial_alpha(0.1);
  const auto algorithm = MakeAlgorithm(config);
  EXPECT_EQ(GetArray(*algorithm, 0, "actor.log_std.2.bias"), (std::vector<float>{-1.5f, -1.5f}));
  EXPECT_NE(GetArray(*algorithm, 0, "actor.mean.2.bias")[0], -1.5f);
  EXPECT_NEAR(algorithm->GetStats()[0].alpha(), 0.1, 1e-7);
}

// Both members start with equal nets. With scale 1/4 the targets are a quarter, so the loss is 1/16.
TEST(SoftActorCritic, RecordsItsCriticsInTheTasksUnit) {
  AlgorithmConfig config = SmallConfig("sac", 2);
  config.members[1] = config.members[0];
  config.members[1].hyper.set_reward_scale(0.25);
  const auto algorithm = MakeAlgorithm(config);
  Batch batch = RandomBatch(config, 1);
  const size_t rows = batch.reward.size() / 2;
  for (auto* values : {&batch.observation, &batch.action, &batch.reward, &batch.next_observation, &batch.absorbing}) {
    const size_t half = values->size() / 2;
    for (size_t i = 0; i < half; ++i) (*values)[half + i] = (*values)[i];
  }
  for (float& reward : batch.reward) reward *= 1e4f;  // dominates the values that nets start with
  ASSERT_EQ(rows, 12u);
  algorithm->Update(batch);
  const Stats stats = algorithm->GetStats();
  EXPECT_NEAR(stats[1].critic_loss() * 16 / stats[0].critic_loss(), 1, 1e-3);
  EXPECT_NEAR(stats[1].q_mean() / stats[0].q_mean(), 4, 1e-6) << "equal nets, read in quarters of the task's unit";
}

TEST(Datacom, KeepsAFixedDeltaExactly) {
  AlgorithmConfig config = SmallConfig("datacom", 2);
  config.members[0].hyper.set_delta_mode("fixed");
  config.members[0].hyper.set_init_delta(0.3);
  const auto algorithm = MakeAlgorithm(config);
  ApplyEpisodes(algorithm.get(), config, 1);
  const Stats stats = algorithm->GetStats();
  EXPECT_EQ(stats[0].delta(), 0.3);
  EXPECT_EQ(OfMembers(stats, &v1::MemberEpoch::delta_steps), (std::vector<uint64_t>{0, 1}));
  EXPECT_NE(stats[1].delta(), std::log1p(std::exp(1.0)));
  EXPECT_EQ(algorithm->GetActingParameters()[0].scalars.at("delta"), 0.3);
}

TEST(Datacom, ShowsAndPublishesADeltaAtThePeakOfAcceptableEpisodes) {
  AlgorithmConfig config = SmallConfig("datacom", 2);
  config.members[0].hyper.set_delta_mode("peak");
  const auto algorithm = MakeAlgorithm(config);
  EXPECT_NEAR(algorithm->GetStats()[0].delta(), std::log1p(std::exp(1.0)), 1e-12);
  EXPECT_TRUE(std::isnan(algorithm->GetStats()[0].delta_cost())) << "no episode yet";
  const std::vector<float> z(3 * (config.q_dim + config.x_dim), 0.5f), costs{0, 100, 200};
  algorithm->ApplyEpisodes({{0, 2, z.data(), costs.data()}});
  algorithm->ApplyEpisodes({{1, 2, z.data(), costs.data()}});
  const Stats stats = algorithm->GetStats();
  EXPECT_EQ(stats[0].delta_cost(), 300);
  EXPECT_EQ(stats[0].delta_steps(), 1u);
  EXPECT_FLOAT_EQ(static_cast<float>(stats[0].delta()), 3.949939f) << "the budget 5 of 50 rows, discounted";
  EXPECT_LT(1.1f * GetArray(*algorithm, 0, "delta_raw")[0], 3.9f) << "or else the largest risk counts";
  EXPECT_EQ(algorithm->GetActingParameters()[0].scalars.at("delta"), stats[0].delta());
  EXPECT_TRUE(std::isnan(stats[1].delta_cost())) << "member 1 learns delta";
}

TEST(Datacom, FreezesAMemberWhoseThresholdSeesACostThatIsNotFinite) {
  const AlgorithmConfig config = SmallConfig("datacom_peak", 2);
  const auto algorithm = MakeAlgorithm(config);
  ApplyEpisodes(algorithm.get(), config, 1);
  const double before = algorithm->GetStats()[0].delta();
  const std::vector<float> z(2 * (config.q_dim + config.x_dim), 0.5f), costs{0, std::nanf("")};
  algorithm->ApplyEpisodes({{0, 1, z.data(), costs.data()}});
  EXPECT_EQ(Diverged(*algorithm), (std::vector<bool>{true, false}));
  EXPECT_EQ(algorithm->GetStats()[0].delta(), before);
  EXPECT_EQ(algorithm->GetStats()[0].delta_steps(), 1u);
}

TEST(Datacom, StartsDeltaAtTheSoftplusOfItsRawValue) {
  AlgorithmConfig config = SmallConfig("datacom", 3);
  config.members[0].hyper.set_init_delta(6), config.members[1].hyper.set_init_delta(0),
      config.members[2].hyper.set_init_delta(3);
  const Stats stats = MakeAlgorithm(config)->GetStats();
  EXPECT_NEAR(stats[0].delta(), 6.0025, 1e-4);  // docs/algorithms.md 5.1
  EXPECT_NEAR(stats[1].delta(), 0.7444, 1e-4);
  EXPECT_NEAR(stats[2].delta(), 3.0486, 1e-4);
}

// The snapshot holds one perceptron. Its mean over a batch must equal the mean constraint value that the learner
// reports for its network; the share of values above 0 must, too.
TEST(IqnDatacom, SnapshotHoldsAPerceptronThatEqualsTheNetworkAtItsLevel) {
  for (const auto& [accepted_risk, kernels] : {std::pair{0.1, "fused"}, {0.9, "fused"}, {0.1, "tensor"}}) {
    AlgorithmConfig config = SmallConfig("iqn_datacom", 2, kernels);
    config.members[1].hyper.set_accepted_risk(accepted_risk);
    config.members[1].hyper.set_delta_mode("fixed"), config.members[1].hyper.set_init_delta(0.7);
    const auto algorithm = MakeAlgorithm(config);
    std::vector<NamedArray> arrays;
    const ActingParameters acting = algorithm->GetActingParameters()[1];
    for (const NamedArray& array : acting.arrays) {
      if (array.name.rfind("constraint.value.", 0) == 0) arrays.push_back(array);
    }
    ASSERT_EQ(arrays.size(), 8u);
    const Batch batch = RandomBatch(config, 0);
    const size_t z_dim = config.q_dim + config.x_dim, rows = BatchSize(config);
    double sum = 0, above = 0;
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
      sum += x[0] - 0.7;
      above += x[0] > 0.7 ? 1 : 0;
    }
    algorithm->Update(batch);  // the statistics are of the nets before the step
    EXPECT_NEAR(algorithm->GetStats()[1].constraint_mean(), sum / static_cast<double>(rows), 1e-5) << accepted_risk;
    EXPECT_DOUBLE_EQ(algorithm->GetStats()[1].infeasible_share(), above / static_cast<double>(rows)) << accepted_risk;
  }
}

// The first two updates are in the warm-up and step only the safety model. After that every second update steps the
// actor.
TEST(SafeLayerTd3, MovesThePolicyAfterItsWarmupAndTheActorAtEverySecondUpdate) {
  for (const char* kernels : {"fused", "tensor"}) {
    AlgorithmConfig config = SmallConfig("safe_layer_td3", 2, kernels);
    config.policy_warmup = 2, config.policy_delay = 2;
    std::unique_ptr<Algorithm> algorithm = MakeAlgorithm(config);
    for (int u = 0; u < 6; ++u) {
      if (u == 3) {  // the state holds the count of updates
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
      EXPECT_EQ(moved("target_actor.1.weight"), u >= 2) << u << ": targets move also without a step of the actor";
    }
  }
}

TEST(CbfSac, RefusesAConstraintStateWithUncontrolledEntries) {
  AlgorithmConfig config = SmallConfig("cbf_sac", 1);
  config.x_dim = 5;
  try {
    MakeAlgorithm(config);
    FAIL() << "accepted uncontrolled entries";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cbf_sac"), HasSubstr("5")));
  }
}

// The barrier changes no number of the policy and the critics.
TEST(CbfSac, LearnsTheSamePolicyAsSac) {
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

TEST(CriticLayerNorm, ChangesTheNumbersOfTheCriticsButNotTheirFirstWeights) {
  for (const std::string kernels : {"fused", "tensor"}) {
    for (const std::string name : {"sac", "datacom", "wcsac"}) {
      const auto plain = MakeAlgorithm(SmallConfig(name, 1, kernels));
      const auto normalised = MakeAlgorithm(SmallConfig(name + "_layer_norm", 1, kernels));
      EXPECT_EQ(AllValues(*plain, 0), AllValues(*normalised, 0)) << name;
      const Batch batch = RandomBatch(SmallConfig(name, 1), 0);
      plain->Update(batch);
      normalised->Update(batch);
      for (const std::string array : {"critic.0.0.weight", "critic.1.1.bias", "target_critic.0.2.weight"})
        EXPECT_NE(GetArray(*plain, 0, array), GetArray(*normalised, 0, array)) << name << " " << array;
    }
  }
}

// A normalised layer does not notice the size of its weights and biases.
TEST(CriticLayerNorm, TheSizeOfAHiddenLayerMattersOnlyToCriticsThatAreNotNormalised) {
  for (const char* name : {"sac", "sac_layer_norm"}) {
    const AlgorithmConfig config = SmallConfig(name, 1);
    const auto loss = [&](const std::string& prefix) {
      const auto algorithm = MakeAlgorithm(config);
      for (const std::string array : {"0.0.weight", "0.0.bias", "1.1.weight", "1.1.bias"}) {
        if (prefix.empty()) break;
        std::vector<float> values = GetArray(*algorithm, 0, prefix + array);
        for (float& value : values) value *= 16;
        SetArray(algorithm.get(), 0, prefix + array, values);
      }
      algorithm->Update(RandomBatch(config, 0));
      return algorithm->GetStats()[0].critic_loss();
    };
    for (const char* prefix : {"critic.", "target_critic."}) {
      const double change = std::abs(loss(prefix) / loss("") - 1);
      EXPECT_TRUE(config.network.critic_layer_norm() ? change < 1e-4 : change > 0.1)
          << name << " " << prefix << " " << change;
    }
  }
}

// The actor stands still, so that the next actions are the same.
TEST(CriticLayerNorm, DoesNotNormaliseACostCritic) {
  std::vector<std::vector<float>> cost_critics;
  for (const char* name : {"lag_sac", "lag_sac_layer_norm"}) {
    AlgorithmConfig config = SmallConfig(name, 1);
    config.members[0].hyper.set_actor_lr(0);
    const auto algorithm = MakeAlgorithm(config);
    for (int u = 0; u < 3; ++u) algorithm->Update(RandomBatch(config, u));
    cost_critics.push_back(GetArray(*algorithm, 0, "cost_critic.1.weight"));
  }
  EXPECT_EQ(cost_critics[0], cost_critics[1]);
}

TEST(CriticLayerNorm, AStateOfOtherCriticsIsRefusedInBothDirections) {
  const auto plain = MakeAlgorithm(SmallConfig("sac", 1)), normalised = MakeAlgorithm(SmallConfig("sac_layer_norm", 1));
  for (const auto& [from, to] : {std::pair(plain.get(), normalised.get()), std::pair(normalised.get(), plain.get())}) {
    try {
      to->Load(from->Save());
      ADD_FAILURE() << "accepted the state of other critics";
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("'signature'"), HasSubstr("sac+critic_layer_norm members=1")));
    }
  }
}

TEST(SafeLayerTd3, RefusesCriticsWithoutASecondLayerForTheAction) {
  AlgorithmConfig config = SmallConfig("safe_layer_td3", 1);
  SetHidden({16}, config.network.mutable_critic_hidden());
  try {
    MakeAlgorithm(config);
    FAIL() << "accepted critics with one layer";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("network.critic_hidden"), HasSubstr("at least two hidden layers, not 1")));
  }
}

// The output of the base is then its only layer.
TEST(IqnDatacom, LearnsWithOneHiddenLayerOfTheConstraint) {
  std::vector<Stats> stats;
  for (const char* kernels : {"fused", "tensor"}) {
    AlgorithmConfig config = SmallConfig("iqn_datacom", 2, kernels);
    SetHidden({16}, config.network.mutable_constraint_hidden());
    const auto algorithm = MakeAlgorithm(config);
    for (int u = 0; u < 2; ++u) algorithm->Update(RandomBatch(config, u));
    ApplyEpisodes(algorithm.get(), config, 1);
    stats.push_back(algorithm->GetStats());
  }
  EXPECT_FALSE(stats[0][1].diverged());
  for (const auto field : {&v1::MemberEpoch::constraint_loss, &v1::MemberEpoch::policy_loss, &v1::MemberEpoch::delta})
    EXPECT_NEAR((stats[0][1].*field)(), (stats[1][1].*field)(), 1e-4) << "the policy's loss reads the Jacobian";
}

TEST(IqnDatacom, RefusesAConfigurationWithoutLevels) {
  AlgorithmConfig config = SmallConfig("iqn_datacom", 1);
  config.quantiles = 0;
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
}

// The episode has one step with cost c, so the costs to go are 0.99 c and c. All weights of the constraint are zero, so
// its risk is the same at every state. The gradient of delta changes its sign at c = 2 (budget + risk - delta) / 1.99:
//   delta = ln(1 + e) = 1.313262 before; the first step of Adam is delta_lr long: ln(1 + e^0.95) or ln(1 + e^1.05)
//   after datacom: budget 30 / 50 (1 - 0.99^50) / 0.01 = 23.699636, risk ln 2 + phi(Phi^-1(0.1)) / 0.9 = 0.888145
//   iqn_datacom: budget 30, not discounted, risk ln 2 = 0.693147
TEST(Datacom, DiscountsItsBudgetAndIqnDatacomDoesNot) {
  const std::pair<const char*, float> cases[] = {{"datacom", 23.391477f}, {"iqn_datacom", 29.527523f}};
  for (const auto& [name, threshold] : cases) {
    EXPECT_EQ(InfoOf(name).discounted_budget, threshold > 25) << name;
    for (const float beside : {-10.0f, -0.01f, 0.01f, 10.0f}) {
      AlgorithmConfig config = SmallConfig(name, 1);
      config.learner.set_discount(0.99), config.horizon = 50;
      v1::Hyper& hyper = config.members[0].hyper;
      hyper.set_cost_budget(30), hyper.set_accepted_risk(0.9), hyper.set_init_delta(1), hyper.set_delta_lr(0.05);
      const auto algorithm = MakeAlgorithm(config);
      for (const std::string& array : ArrayNames(*algorithm)) {
        if (array.rfind("constraint.", 0) != 0) continue;
        SetArray(algorithm.get(), 0, array, std::vector<float>(GetArray(*algorithm, 0, array).size(), 0.0f));
      }
      EXPECT_NEAR(algorithm->GetStats()[0].delta(), 1.313262, 1e-6);
      const std::vector<float> z(2 * (config.q_dim + config.x_dim), 0.5f), costs{99, threshold + beside};
      algorithm->ApplyEpisodes({{0, 1, z.data(), costs.data()}});
      EXPECT_NEAR(algorithm->GetStats()[0].delta(), beside < 0 ? 1.350058 : 1.276956, 1e-6)
          << name << " where the step costs " << costs[1];
      EXPECT_EQ(algorithm->GetStats()[0].delta_steps(), 1u);
    }
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
