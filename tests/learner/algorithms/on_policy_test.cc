// PPOLag and RCPO as populations: what an epoch does to the nets, to the statistics of observations and to the
// multiplier. contract_test.cc and freeze_test.cc run over both of them, too.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "learner/algorithms/minibatch_order.h"
#include "learner/algorithms/rcpo.h"
#include "tests/learner/algorithms/on_policy_testing.h"
#include "tests/learner/algorithms/testing.h"

namespace datacom::learner {
namespace {

struct Variant {
  std::string algorithm, kernels;
};
class EveryVariant : public ::testing::TestWithParam<Variant> {
 protected:
  AlgorithmConfig Config(int members = 1) const {
    return SmallConfig(GetParam().algorithm, members, GetParam().kernels);
  }
};
INSTANTIATE_TEST_SUITE_P(All, EveryVariant,
                         ::testing::Values(Variant{"ppo_lag", "fused"}, Variant{"ppo_lag", "tensor"},
                                           Variant{"rcpo", "fused"}, Variant{"rcpo", "tensor"}),
                         [](const auto& info) { return info.param.algorithm + "_" + info.param.kernels; });

double Steps(const Algorithm& algorithm, const std::string& optimizer, int member = 0) {
  double steps = -1;
  std::memcpy(&steps, algorithm.Save().at("steps." + optimizer).data() + member * sizeof steps, sizeof steps);
  return steps;
}

void Finish(Algorithm* algorithm, int member, float cost) {
  const float costs[] = {0, cost};
  algorithm->ApplyEpisodes({{member, 1, nullptr, costs}});
}

// A net of the algorithm with its parameters in float64, as Literal reads them.
struct LiteralNet {
  ParameterLayout layout;
  MlpLayout net;
  Numbers block;
  LiteralNet(const Algorithm& algorithm, const std::string& name, const std::vector<int>& widths) {
    net = layout.AddMlp(name, widths, Activation::kTanh, {});
    block = Read(algorithm, "");
  }
  Numbers Read(const Algorithm& algorithm, const std::string& prefix) const {
    Numbers values(layout.size());
    for (const ParameterArray& array : layout.arrays()) {
      const std::vector<float> part = GetArray(algorithm, 0, prefix + array.name);
      std::copy(part.begin(), part.end(), values.begin() + array.offset);
    }
    return values;
  }
  Numbers At(const Numbers& parameters, const Numbers& x, int rows) const { return Literal(net, parameters, x, rows); }
};

Numbers Wide(const std::vector<float>& values) { return Numbers(values.begin(), values.end()); }

// What the batch of one member says, with the untrained nets' values. The first epoch is not normalised.
struct LiteralEpoch {
  LiteralNet mean, critic, cost_critic;
  Numbers x, log_std, target, cost_target;
  LiteralRows rows;
  LiteralEpoch(const Algorithm& algorithm, const AlgorithmConfig& config, const Batch& batch)
      : mean(algorithm, "actor.mean", Widths(config.obs_dim, config.network.actor_hidden(), config.action_dim)),
        critic(algorithm, "critic", Widths(config.obs_dim, config.network.critic_hidden(), 1)),
        cost_critic(algorithm, "cost_critic", Widths(config.obs_dim, config.network.critic_hidden(), 1)),
        x(Wide(batch.observation)),
        log_std(Wide(GetArray(algorithm, 0, "actor.log_std"))) {
    const int N = config.epoch_rows;
    std::string ends;
    for (int r = 0; r < N; ++r) ends += batch.absorbing[r] != 0 ? 't' : batch.path_end[r] != 0 ? 'c' : '.';
    const auto advantages = [&](const LiteralNet& net, const std::vector<float>& signal, bool cost, Numbers* targets) {
      const Numbers value = net.At(net.block, x, N), final_value = net.At(net.block, Wide(batch.next_observation), N);
      Numbers advantage = LiteralAdvantages({Wide(signal), value, final_value, ends}, cost, config.learner.discount(),
                                            config.members[0].hyper.gae_lambda());
      for (int r = 0; r < N; ++r) targets->push_back(advantage[r] + value[r]);
      const double middle = std::accumulate(advantage.begin(), advantage.end(), 0.0) / N;
      for (double& a : advantage) a -= middle;
      return advantage;
    };
    Numbers reward = advantages(critic, batch.reward, false, &target);
    const Numbers cost = advantages(cost_critic, batch.cost, true, &cost_target);
    const double width = std::sqrt(Inner(reward, reward) / N), price = GetArray(algorithm, 0, "multiplier")[0];
    rows = {Wide(batch.action), Wide(batch.columns[0]), {}};
    for (int r = 0; r < N; ++r) rows.advantage.push_back((reward[r] / width - price * cost[r]) / (1 + price));
  }
};

double Divergence(const LiteralEpoch& epoch, const Numbers& parameters, const Numbers& log_std, int rows) {
  return LiteralDivergence(epoch.mean.At(epoch.mean.block, epoch.x, rows), epoch.log_std,
                           epoch.mean.At(parameters, epoch.x, rows), log_std);
}

TEST_P(EveryVariant, GradientsOfCriticsAndPolicyMatchFiniteDifferences) {
  AlgorithmConfig config = Config();
  SetHidden({5, 4}, config.network.mutable_actor_hidden());
  SetHidden({4, 5}, config.network.mutable_critic_hidden());
  config.learner.set_passes(1),
      config.learner.set_batch_size(config.epoch_rows);  // the kept gradients are those of the whole epoch
  config.members[0].hyper.set_critic_decay(0.01);
  const auto algorithm = MakeAlgorithm(config);
  const Batch batch = RandomBatch(config, 1);
  const LiteralEpoch epoch(*algorithm, config, batch);
  algorithm->Update(batch);
  const int N = config.epoch_rows;
  for (const bool cost : {false, true}) {
    const LiteralNet& net = cost ? epoch.cost_critic : epoch.critic;
    const Numbers& target = cost ? epoch.cost_target : epoch.target;
    const auto loss = [&](const Numbers& p) {
      const Numbers value = net.At(p, epoch.x, N);
      double sum = 0.01 * Inner(p, p);
      for (int r = 0; r < N; ++r) sum += (value[r] - target[r]) * (value[r] - target[r]) / N;
      return sum;
    };
    ExpectNear(net.Read(*algorithm, "grad."), Differences(loss, net.block), 2e-5, cost ? "cost critic" : "critic");
    const double recorded = cost ? algorithm->GetStats()[0].constraint_loss() : algorithm->GetStats()[0].critic_loss();
    EXPECT_NEAR(recorded, loss(net.block), 1e-5 * recorded);
  }
  const double clip = GetParam().algorithm == "ppo_lag" ? 0.2 : 1e9;
  const auto surrogate = [&](const Numbers& p, const Numbers& log_std) {
    return LiteralSurrogate(epoch.rows, epoch.mean.At(p, epoch.x, N), log_std, clip, 1.0 / N);
  };
  const Numbers by_mean = Differences([&](const Numbers& p) { return surrogate(p, epoch.log_std); }, epoch.mean.block);
  const Numbers by_std = Differences([&](const Numbers& s) { return surrogate(epoch.mean.block, s); }, epoch.log_std);
  ExpectNear(epoch.mean.Read(*algorithm, "grad."), by_mean, 5e-5, "mean");
  ExpectNear(Wide(GetArray(*algorithm, 0, "grad.actor.log_std")), by_std, 5e-5, "log_std");
}

// Gives the Fisher product of a direction instead of learning.
class FisherProbe : public Rcpo {
 public:
  FisherProbe(const AlgorithmConfig& config, const std::vector<float>& direction)
      : Rcpo(config), direction_(kernels_->NewFloats(1, 1, static_cast<int>(actor_end_))) {
    kernels_->Upload(direction.data(), direction_);
  }
  std::vector<float> product;

 protected:
  void Learn() override {
    const FloatView out = kernels_->NewFloats(1, 1, static_cast<int>(actor_end_));
    FisherProduct(direction_, out);
    product.resize(actor_end_);
    kernels_->Download(out, product.data());
  }

 private:
  FloatView direction_;
};

TEST(Rcpo, FisherProductsAreDifferencesOfTheDivergencesGradient) {
  for (const char* kernels : {"fused", "tensor"}) {
    AlgorithmConfig config = SmallConfig("rcpo", 1, kernels);
    SetHidden({4, 3}, config.network.mutable_actor_hidden());
    config.obs_dim = 3;
    config.epoch_rows = 300;  // two chunks of rows
    config.members[0].hyper.set_fisher_damping(0.3);
    const Batch batch = RandomBatch(config, 2);
    const LiteralEpoch epoch(*MakeAlgorithm(config), config, batch);
    const int N = config.epoch_rows, n = config.action_dim;
    const size_t net_size = epoch.mean.block.size();
    Numbers direction = Random(3, net_size + n);
    for (size_t i = 0; i < net_size; ++i) {  // between the arrays there are unused numbers
      bool used = false;
      for (const ParameterArray& a : epoch.mean.layout.arrays()) {
        used |= i >= static_cast<size_t>(a.offset) && i < static_cast<size_t>(a.offset + a.size());
      }
      if (!used) direction[i] = 0;
    }
    // d/dtheta of the divergence at theta = the policy + step * direction
    const auto gradient = [&](double step) {
      Numbers theta = epoch.mean.block;
      theta.insert(theta.end(), epoch.log_std.begin(), epoch.log_std.end());
      for (size_t i = 0; i < theta.size(); ++i) theta[i] += step * direction[i];
      return Differences(
          [&](const Numbers& at) {
            return Divergence(epoch, Numbers(at.begin(), at.begin() + net_size),
                              Numbers(at.begin() + net_size, at.end()), N);
          },
          theta, 1e-4);
    };
    Numbers wanted = gradient(1e-3);
    const Numbers below = gradient(-1e-3);
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = (wanted[i] - below[i]) / 2e-3 + 0.3 * direction[i];

    std::vector<float> padded(net_size + 16);
    std::copy(direction.begin(), direction.end(), padded.begin());
    FisherProbe probe(config, padded);
    probe.Update(batch);
    ASSERT_GE(probe.product.size(), wanted.size());
    probe.product.resize(wanted.size());
    ExpectNear(Wide(probe.product), wanted, 1e-4, kernels);
  }
}

TEST(Rcpo, AStepDivergesByItsLengthIfTheDampingIsSmall) {
  AlgorithmConfig config = SmallConfig("rcpo", 1);
  config.epoch_rows = 300;
  config.members[0].hyper.set_fisher_damping(1e-3);
  config.members[0].hyper.set_target_kl(1e-4);
  const auto algorithm = MakeAlgorithm(config);
  const Batch batch = RandomBatch(config, 2);
  const LiteralEpoch epoch(*algorithm, config, batch);
  algorithm->Update(batch);
  const double divergence = Divergence(epoch, epoch.mean.Read(*algorithm, ""),
                                       Wide(GetArray(*algorithm, 0, "actor.log_std")), config.epoch_rows);
  EXPECT_GT(divergence, 0.5e-4);
  EXPECT_LT(divergence, 1.1e-4);
}

TEST(MinibatchOrder, IsAPermutationThatDependsOnlyOnSeedsEpochAndPass) {
  const auto order = [](uint64_t run, uint64_t member, uint64_t epoch, int pass) {
    std::vector<int> indices(500);
    MinibatchOrder(run, member, epoch, pass, &indices);
    return indices;
  };
  const std::vector<int> first = order(1, 2, 3, 4);
  EXPECT_EQ(std::set<int>(first.begin(), first.end()).size(), 500u);
  EXPECT_EQ(*std::min_element(first.begin(), first.end()), 0);
  EXPECT_EQ(*std::max_element(first.begin(), first.end()), 499);
  EXPECT_EQ(order(1, 2, 3, 4), first);
  for (const auto& other : {order(2, 2, 3, 4), order(1, 3, 3, 4), order(1, 2, 4, 4), order(1, 2, 3, 5)}) {
    int same = 0;
    for (int i = 0; i < 500; ++i) same += other[i] == first[i];
    EXPECT_LT(same, 10) << "about one index stays in its place by chance";
  }
}

TEST(PpoLag, TheActorsRateDecaysToZeroAndTheCriticsDoesNot) {
  for (const char* kernels : {"fused", "tensor"}) {
    AlgorithmConfig config = SmallConfig("ppo_lag", 1, kernels);
    config.epochs = 4;
    const auto decayed = MakeAlgorithm(config);
    for (int u = 0; u < 3; ++u) decayed->Update(RandomBatch(config, u));
    AlgorithmConfig constant = config;
    constant.epochs = uint64_t{1} << 50;
    constant.members[0].hyper.set_actor_lr(config.members[0].hyper.actor_lr() / 4);
    const auto quarter = MakeAlgorithm(constant);
    quarter->Load(decayed->Save());
    for (Algorithm* each : {decayed.get(), quarter.get()}) each->Update(RandomBatch(config, 3));
    const std::vector<float> a = AllValues(*decayed, 0), b = AllValues(*quarter, 0);
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-7) << i;
    const std::vector<float> actor = GetArray(*decayed, 0, "actor.mean.1.weight");
    const std::vector<float> critic = GetArray(*decayed, 0, "critic.1.weight");
    decayed->Update(RandomBatch(config, 4));
    EXPECT_EQ(GetArray(*decayed, 0, "actor.mean.1.weight"), actor) << "beyond the last epoch";
    EXPECT_NE(GetArray(*decayed, 0, "critic.1.weight"), critic);
  }
}

TEST(PpoLag, PassesEndForEachMemberWhenItsPolicyHasDiverged) {
  for (const char* kernels : {"fused", "tensor"}) {
    AlgorithmConfig config = SmallConfig("ppo_lag", 3, kernels);
    config.learner.set_passes(5);
    const double rates[] = {0, 0.1, 1e-6};
    for (int m = 0; m < 3; ++m) config.members[m].hyper.set_actor_lr(rates[m]);
    const auto algorithm = MakeAlgorithm(config);
    for (uint64_t epoch = 1; epoch <= 2; ++epoch) {  // passes of four minibatches
      algorithm->Update(RandomBatch(config, epoch));
      EXPECT_EQ(Steps(*algorithm, "critic", 0), 20 * epoch);
      EXPECT_EQ(Steps(*algorithm, "actor", 0), 20 * epoch);
      EXPECT_EQ(Steps(*algorithm, "critic", 1), 4 * epoch) << "it diverged in the first pass";
      EXPECT_EQ(Steps(*algorithm, "actor", 1), 4 * epoch);
      EXPECT_EQ(Steps(*algorithm, "actor", 2), 20 * epoch);
      EXPECT_EQ(Diverged(*algorithm), (std::vector<bool>{0, 0, 0})) << "stopping early is no failure";
    }
  }
}

TEST_P(EveryVariant, ObservationsOfAnEpochCountFromTheNextEpochOn) {
  const AlgorithmConfig config = Config();
  const auto algorithm = MakeAlgorithm(config);
  EXPECT_EQ(GetArray(*algorithm, 0, "observation.mean"), std::vector<float>(5, 0.0f));
  EXPECT_EQ(GetArray(*algorithm, 0, "observation.std"), std::vector<float>(5, 1.0f));
  Batch batch = RandomBatch(config, 1);
  for (int r = 0; r < config.epoch_rows; ++r) batch.observation[r * 5 + 2] = 1.5f;  // constant
  algorithm->Update(batch);
  const std::vector<float> mean = GetArray(*algorithm, 0, "observation.mean");
  const std::vector<float> deviation = GetArray(*algorithm, 0, "observation.std");
  EXPECT_EQ(mean[2], 1.5f);
  EXPECT_EQ(deviation[2], 0.01f) << "the least deviation";
  double sum = 0, squares = 0;
  for (int r = 0; r < 40; ++r) sum += batch.observation[r * 5] / 40.0;
  for (int r = 0; r < 40; ++r) squares += std::pow(batch.observation[r * 5] - sum, 2) / 39;
  EXPECT_NEAR(mean[0], sum, 1e-6);
  EXPECT_NEAR(deviation[0], std::sqrt(squares), 1e-6);

  // The second epoch is learned as one whose observations were normalised with these numbers before.
  const auto prepared = MakeAlgorithm(config);
  prepared->Load(algorithm->Save());
  SetArray(prepared.get(), 0, "observation.mean", std::vector<float>(5, 0.0f));
  SetArray(prepared.get(), 0, "observation.std", std::vector<float>(5, 1.0f));
  const Batch raw = RandomBatch(config, 2);
  Batch normalised = raw;
  for (auto* values : {&normalised.observation, &normalised.next_observation}) {
    for (size_t i = 0; i < values->size(); ++i) {
      (*values)[i] = std::clamp(((*values)[i] - mean[i % 5]) / deviation[i % 5], -5.0f, 5.0f);
    }
  }
  algorithm->Update(raw);
  prepared->Update(normalised);
  EXPECT_EQ(GetArray(*algorithm, 0, "actor.mean.0.weight"), GetArray(*prepared, 0, "actor.mean.0.weight"));
  EXPECT_EQ(GetArray(*algorithm, 0, "critic.2.weight"), GetArray(*prepared, 0, "critic.2.weight"));
  EXPECT_NE(GetArray(*algorithm, 0, "observation.mean"), mean) << "80 rows by now";
  const ActingParameters acting = algorithm->GetActingParameters()[0];
  for (const NamedArray& array : acting.arrays) EXPECT_EQ(array.values, GetArray(*algorithm, 0, array.name));
}

TEST_P(EveryVariant, TheMultiplierFollowsTheMeanCostOfTheNewestFiftyEpisodes) {
  AlgorithmConfig config = Config(2);
  for (MemberConfig& member : config.members) member.hyper.set_cost_budget(5);
  const auto algorithm = MakeAlgorithm(config);
  algorithm->Update(RandomBatch(config, 0));
  EXPECT_EQ(OfMembers(algorithm->GetStats(), &v1::MemberEpoch::multiplier), (std::vector<double>{0.001, 0.001}))
      << "no episode has finished";
  Finish(algorithm.get(), 0, 1e6);  // leaves the window before the next update
  for (int i = 0; i < 25; ++i) Finish(algorithm.get(), 0, 3), Finish(algorithm.get(), 0, 9);
  Finish(algorithm.get(), 1, -1);  // costs below 0 count as 0
  algorithm->Update(RandomBatch(config, 1));
  // Adam's first step has the length of the rate.
  EXPECT_NEAR(algorithm->GetStats()[0].multiplier(), 0.001 + 0.035, 1e-9);
  EXPECT_EQ(algorithm->GetStats()[1].multiplier(), 0) << "it is never negative";
  algorithm->Update(RandomBatch(config, 2));
  // The gradient -(6 - 5) is constant, so the second step has the same length.
  EXPECT_NEAR(algorithm->GetStats()[0].multiplier(), 0.001 + 2 * 0.035, 1e-9);
}

TEST_P(EveryVariant, AFrozenMemberKeepsItsMultiplierAndItsStatisticsOfObservations) {
  const AlgorithmConfig config = Config(2);
  const auto algorithm = MakeAlgorithm(config);
  for (int m = 0; m < 2; ++m) Finish(algorithm.get(), m, 50);
  algorithm->Update(RandomBatch(config, 0));
  const std::vector<float> mean = GetArray(*algorithm, 0, "observation.mean");
  const double before = algorithm->GetStats()[0].multiplier();
  Batch poisoned = RandomBatch(config, 1);
  poisoned.reward[7] = NAN;
  algorithm->Update(poisoned);
  EXPECT_EQ(Diverged(*algorithm), (std::vector<bool>{1, 0}));
  EXPECT_EQ(algorithm->GetStats()[0].multiplier(), before);
  EXPECT_GT(algorithm->GetStats()[1].multiplier(), before);
  EXPECT_EQ(GetArray(*algorithm, 0, "observation.mean"), mean);
}

TEST_P(EveryVariant, RefusesAConfigurationWithoutTheRowsOfAnEpoch) {
  for (int what = 0; what < 3; ++what) {
    AlgorithmConfig config = Config();
    if (what == 0) config.epoch_rows = 0;
    if (what == 1) config.epochs = 0;
    if (what == 2) config.learner.set_passes(0);
    EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument) << what;
  }
}

TEST(OnPolicy, BothBackendsAgreeOnAnEpochOfSeveralChunks) {
  for (const char* name : {"ppo_lag", "rcpo"}) {
    AlgorithmConfig config = SmallConfig(name, 2);
    config.epoch_rows = 600, config.learner.set_batch_size(64), config.learner.set_passes(2);
    AlgorithmConfig tensor = config;
    tensor.learner.set_kernels("tensor");
    const auto a = MakeAlgorithm(config), b = MakeAlgorithm(tensor);
    for (Algorithm* each : {a.get(), b.get()}) {
      for (int m = 0; m < 2; ++m) Finish(each, m, 20);
      each->Update(RandomBatch(config, 1));
    }
    for (int m = 0; m < 2; ++m) {
      const std::vector<float> x = AllValues(*a, m), y = AllValues(*b, m);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-5) << name << " " << i;
    }
  }
}

// Every row is an episode with s uniform in [-1, 1]: the reward is -(action - s)^2, the cost 10 times the action where
// it is positive. So the best policy without a budget costs 2.5. Returns
// the mean reward and cost of the last epoch's rows.
std::pair<double, double> OneStepTask(AlgorithmConfig config, int epochs) {
  config.obs_dim = config.action_dim = 1, config.action_low = {-1}, config.action_high = {1};
  config.epoch_rows = 512, config.learner.set_batch_size(64), config.learner.set_passes(10), config.epochs = 1000;
  const auto algorithm = MakeAlgorithm(config);
  NamedStream stream(5);
  Batch batch;
  batch.Resize(config);
  double reward = 0, cost = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const LiteralNet mean(*algorithm, "actor.mean", Widths(1, config.network.actor_hidden(), 1));
    const double log_std = GetArray(*algorithm, 0, "actor.log_std")[0],
                 centre = GetArray(*algorithm, 0, "observation.mean")[0],
                 width = GetArray(*algorithm, 0, "observation.std")[0];
    reward = cost = 0;
    for (int r = 0; r < config.epoch_rows; ++r) {
      const double s = stream.Uniform(-1, 1), middle = mean.At(mean.block, {(s - centre) / width}, 1)[0];
      const double eps =
          std::sqrt(-2 * std::log(1 - stream.Uniform())) * std::cos(2 * std::acos(-1.0) * stream.Uniform());
      const double action = middle + std::exp(log_std) * eps;
      batch.observation[r] = static_cast<float>(s);
      batch.action[r] = static_cast<float>(action);
      batch.columns[0][r] = static_cast<float>(-0.5 * eps * eps - log_std - 0.5 * std::log(2 * std::acos(-1.0)));
      batch.reward[r] = static_cast<float>(-(action - s) * (action - s));
      batch.cost[r] = static_cast<float>(10 * action);
      batch.absorbing[r] = batch.path_end[r] = 1;
      Finish(algorithm.get(), 0, batch.cost[r]);
      reward += batch.reward[r] / config.epoch_rows;
      cost += std::max(batch.cost[r], 0.0f) / config.epoch_rows;
    }
    algorithm->Update(batch);
  }
  return {reward, cost};
}

TEST(OnPolicy, AnUpdateSaysInEveryMinibatchThatItIsAlive) {
  AlgorithmConfig config = SmallConfig("rcpo", 1);
  int alive = 0;
  config.alive = [&alive] { ++alive; };
  MakeAlgorithm(config)->Update(RandomBatch(config, 1));
  const int minibatches = (config.epoch_rows + BatchSize(config) - 1) / BatchSize(config);
  EXPECT_EQ(alive, config.learner.passes() * minibatches);
}

TEST(OnPolicy, ImprovesAPolicyAndHeedsItsBudget) {
  for (const char* name : {"ppo_lag", "rcpo"}) {
    AlgorithmConfig config = SmallConfig(name, 1);
    v1::Hyper& hyper = config.members[0].hyper;
    hyper.set_actor_lr(3e-3), hyper.set_critic_lr(3e-3), hyper.set_constraint_lr(3e-3);
    config.members[0].hyper.set_cost_budget(1e6);
    const auto [reward, cost] = OneStepTask(config, 20);
    EXPECT_GT(reward, -0.1) << "it starts near -1.3";
    EXPECT_GT(cost, 2) << name;
    config.members[0].hyper.set_cost_budget(0.5);
    config.members[0].hyper.set_multiplier_lr(
        1);  // it weighs the cost before the policy has become nearly deterministic
    EXPECT_LT(OneStepTask(config, 20).second, 1) << name;
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
