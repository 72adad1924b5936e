// SafeLOOP's learner: its kernels against float64 and finite differences on both backends, when it trains what, and on
// which rows.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "learner/algorithms/dynamics_kernels.h"
#include "learner/algorithms/dynamics_learner.h"
#include "tests/learner/algorithms/testing.h"
#include "tests/learner/nn/kernels_testing.h"

namespace datacom::learner {
namespace {

INSTANTIATE_TEST_SUITE_P(All, EveryKernels, ::testing::Values("fused", "tensor"),
                         [](const auto& info) { return info.param; });

double Softplus(double x) { return std::log1p(std::exp(x)); }

// Mean over the rows that count and their numbers of (mean - target)^2 exp(-v) + v.
double LiteralLikelihood(const Numbers& out, const Numbers& target, const Numbers& weight) {
  const size_t rows = weight.size(), d = target.size() / rows;
  double sum = 0, counted = 0;
  for (size_t r = 0; r < rows; ++r) {
    if (weight[r] == 0) continue;
    ++counted;
    for (size_t i = 0; i < d; ++i) {
      const double apart = out[r * 2 * d + i] - target[r * d + i];
      double v = 0.5 - Softplus(0.5 - out[r * 2 * d + d + i]);
      v = -10 + Softplus(v + 10);
      sum += (apart * apart * std::exp(-v) + v) / static_cast<double>(d);
    }
  }
  return sum / counted;
}

TEST_P(EveryKernels, DynamicsLikelihoodAndItsGradientAreThoseOfABoundedGaussian) {
  const int members = 2, rows = 9, d = 3;
  Numbers weight(members * rows, 1);
  weight[2] = weight[rows - 1] = weight[rows] = 0;
  Numbers out = Random(1, members * rows * 2 * d, 3);
  Numbers target = Random(2, members * rows * d, 2);
  out[d] = 30, out[d + 1] = -30;  // beyond both bounds
  out[1] = target[1];             // or the second would dominate
  const FloatView d_out = kernels_->NewFloats(members, rows, 2 * d);
  const DoubleView loss = UploadDoubles({1, 2}, members, 1, 1), sum = UploadDoubles({0, 0.5}, members, 1, 1);
  DynamicsKernels* const kernels = kernels_->Group<DynamicsKernels>();
  const FloatView o = Upload(out, members, rows, 2 * d), t = Upload(target, members, rows, d);
  const FloatView w = Upload(weight, members, rows, 1);
  kernels->Likelihood(o, t, w, d_out, loss);
  kernels->SquaredError(o, t, w, sum);
  for (int m = 0; m < members; ++m) {
    const Numbers own = PartOf(out, members, m), wanted = PartOf(target, members, m),
                  counts = PartOf(weight, members, m);
    const auto f = [&](const Numbers& at) { return LiteralLikelihood(at, wanted, counts); };
    EXPECT_NEAR(Download(loss)[m], 1 + m + f(own), 1e-5 * (1 + m + f(own)));
    ExpectNear(PartOf(Download(d_out), members, m), Differences(f, own), 1e-4, "gradient");
    double squares = 0.5 * m;
    for (int k = 0; k < rows * d; ++k) {
      squares += counts[k / d] * std::pow(own[k / d * 2 * d + k % d] - wanted[k], 2) / d;
    }
    EXPECT_NEAR(Download(sum)[m], squares, 1e-5 * squares);
  }
}

TEST_P(EveryKernels, DynamicsLikelihoodOfNoRowIsZero) {
  const FloatView d_out = Upload(Random(1, 12), 1, 3, 4);
  const DoubleView loss = UploadDoubles({0}, 1, 1, 1);
  kernels_->Group<DynamicsKernels>()->Likelihood(Upload(Random(2, 12), 1, 3, 4), Upload(Random(3, 6), 1, 3, 2),
                                                 Upload({0, 0, 0}, 1, 3, 1), d_out, loss);
  EXPECT_EQ(Download(loss)[0], 0);
  EXPECT_EQ(Download(d_out), Numbers(12, 0));
}

// The net of `layout` with two hidden layers of swish units, in float64.
Numbers LiteralSwishNet(const Numbers& block, const MlpLayout& net, Numbers x, int rows) {
  for (size_t l = 0; l < net.layers.size(); ++l) {
    const MlpLayer& layer = net.layers[l];
    Numbers y(static_cast<size_t>(rows) * layer.out);
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < layer.out; ++j) {
        double sum = block[layer.bias + j];
        for (int i = 0; i < layer.in; ++i) sum += x[r * layer.in + i] * block[layer.weight + i * layer.out + j];
        y[r * layer.out + j] = l + 1 < net.layers.size() ? sum / (1 + std::exp(-sum)) : sum;
      }
    }
    x = y;
  }
  return x;
}

TEST_P(EveryKernels, SwishNetsAndTheirGradientsAreThoseOfTheFormula) {
  for (const int outputs : {3, 20}) {  // narrow and wide last layers
    ParameterLayout layout;
    const MlpLayout net = layout.AddMlp("net", {4, 19, 33, outputs}, Activation::kSwish, {});
    const int rows = 6, size = static_cast<int>(layout.size());
    const Numbers block = Random(1, size), x = Random(2, rows * 4, 2), d = Random(3, rows * outputs);
    const FloatView parameters = Upload(block, 1, 1, size), gradient = kernels_->NewFloats(1, 1, size);
    const FloatView in = Upload(x, 1, rows, 4), d_out = Upload(d, 1, rows, outputs),
                    d_x = kernels_->NewFloats(1, rows, 4);
    const MlpTape tape = kernels_->NewTape(net, 1, rows);
    kernels_->Forward(parameters, net, in, tape);
    ExpectNear(Download(tape.out), LiteralSwishNet(block, net, x, rows), 1e-5, "output");
    kernels_->Adjoint(parameters, net, d_out, tape);
    kernels_->InputGradient(parameters, net, tape, 0, /*add=*/false, d_x);
    kernels_->ParameterGradient(net, in, d_out, tape, gradient);
    const auto objective = [&](const Numbers& weights, const Numbers& at) {
      const Numbers y = LiteralSwishNet(weights, net, at, rows);
      double sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += d[i] * y[i];
      return sum;
    };
    ExpectNear(Download(d_x), Differences([&](const Numbers& at) { return objective(block, at); }, x), 1e-4, "d_x");
    ExpectNear(Download(gradient), Differences([&](const Numbers& at) { return objective(at, x); }, block), 1e-4,
               "parameters");
  }
}

TEST(RowMemory, KeepsTheNewestRowsInOrderWithoutTheEndsOfEpisodes) {
  AlgorithmConfig config = SmallConfig("safe_loop", 2);
  RowMemory memory(config, 100);
  std::vector<Batch> batches;
  for (int u = 0; u < 3; ++u) {
    batches.push_back(RandomBatch(config, u));
    memory.Append(batches.back());
  }
  std::vector<int> rows;
  memory.Continuing(1, &rows);
  size_t next = 0;
  for (int r = 20; r < 120; ++r) {  // of member 1; the first 20 are overwritten
    const Batch& batch = batches[r / 40];
    const int at = 40 + r % 40;
    if (batch.last[at] != 0) continue;
    ASSERT_LT(next, rows.size());
    const int row = rows[next++];
    for (int i = 0; i < config.obs_dim; ++i) {
      EXPECT_EQ(memory.observation(1, row)[i], batch.observation[at * config.obs_dim + i]);
      EXPECT_EQ(memory.next_observation(1, row)[i], batch.next_observation[at * config.obs_dim + i]);
    }
    EXPECT_EQ(memory.action(1, row)[1], batch.action[at * config.action_dim + 1]);
    EXPECT_EQ(memory.reward(1, row), batch.reward[at]);
  }
  EXPECT_EQ(next, rows.size());
  EXPECT_LT(rows.size(), 100u);
}

TEST(SafeLoop, ReadsNoRowThatEndsAnEpisode) {
  const AlgorithmConfig config = SmallConfig("safe_loop", 1);
  const auto algorithm = MakeAlgorithm(config);
  for (int u = 0; u < 3; ++u) {
    Batch batch = RandomBatch(config, u);
    for (size_t r = 0; r < batch.last.size(); ++r) {
      if (batch.last[r] == 0) continue;
      batch.observation[r * config.obs_dim] = batch.reward[r] = std::numeric_limits<float>::quiet_NaN();
    }
    algorithm->Update(batch);
  }
  EXPECT_EQ(algorithm->GetStats()[0].diverged(), 0);
  EXPECT_TRUE(std::isfinite(algorithm->GetStats()[0].constraint_loss()));
}

TEST(SafeLoop, TrainsEnsembleAndPolicyAtTheirOwnRowsAndActsAtRandomBefore) {
  AlgorithmConfig config = SmallConfig("safe_loop", 1);
  config.planning.set_random_rows(240), config.planning.set_policy_period(80), config.planning.set_model_period(120);
  const auto algorithm = MakeAlgorithm(config);
  const auto array = [&](const char* name) { return GetArray(*algorithm, 0, name); };
  for (int u = 1; u <= 12; ++u) {
    const auto actor = array("actor.1.weight"), critic = array("critic.1.0.weight"), model = array("dynamics.1.2.bias");
    const auto target = array("target_critic.0.0.weight");
    EXPECT_EQ(algorithm->GetActingParameters()[0].scalars.at("random_actions"), (u - 1) * 40 < 240 ? 1 : 0);
    algorithm->Update(RandomBatch(config, u));
    const bool policy = u * 40 >= 240 && u * 40 % 80 == 0;
    EXPECT_EQ(array("actor.1.weight") != actor, policy) << u;
    EXPECT_EQ(array("critic.1.0.weight") != critic, policy) << u;
    EXPECT_EQ(array("target_critic.0.0.weight") != target, policy) << u;
    EXPECT_EQ(array("dynamics.1.2.bias") != model, u * 40 % 120 == 0) << u;
  }
  // Four groups of three updates of the actor.
  EXPECT_NEAR(algorithm->GetStats()[0].alpha(), 0.2 * std::pow(0.99, 12), 1e-12);
}

// Net i of the ensemble at one standardised input, in float64.
Numbers Predict(const Algorithm& algorithm, int net, const Numbers& input) {
  const auto mean = GetArray(algorithm, 0, "dynamics.input_mean"), std = GetArray(algorithm, 0, "dynamics.input_std");
  Numbers x;
  for (size_t i = 0; i < input.size(); ++i) x.push_back((input[i] - mean[i]) / std[i]);
  for (int layer = 0; layer < 3; ++layer) {
    const std::string prefix = "dynamics." + std::to_string(net) + "." + std::to_string(layer);
    const auto weight = GetArray(algorithm, 0, prefix + ".weight"), bias = GetArray(algorithm, 0, prefix + ".bias");
    Numbers y(bias.begin(), bias.end());
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < y.size(); ++j) y[j] += x[i] * weight[i * y.size() + j];
    }
    for (double& v : y) v = layer < 2 ? v / (1 + std::exp(-v)) : v;
    x = y;
  }
  return x;
}

TEST(SafeLoop, LearnsTheDynamicsOfItsRows) {
  AlgorithmConfig config = SmallConfig("safe_loop", 1);
  config.learner.set_batch_size(64);
  config.memory_rows = 2000, config.planning.set_model_period(1000), config.planning.set_policy_updates(0);
  SetHidden({32, 32}, config.planning.mutable_hidden());
  config.members[0].hyper.set_constraint_lr(3e-3);
  const auto algorithm = MakeAlgorithm(config);
  const auto reward = [](const float* s, const float* a) { return 0.5f * s[0] - a[1] + 0.3f * s[2] * a[0]; };
  for (int u = 1; u <= 25; ++u) {
    Batch batch = RandomBatch(config, u);
    for (int r = 0; r < 40; ++r) {
      float* const s = &batch.observation[r * 5];
      s[1] = 50 + 10 * s[1];
      const float* const a = &batch.action[r * 2];
      batch.reward[r] = reward(s, a);
      for (int i = 0; i < 5; ++i) batch.next_observation[r * 5 + i] = s[i] + (i == 3 ? a[0] + 0.5f * s[4] : 0.0f);
    }
    algorithm->Update(batch);
  }
  EXPECT_NEAR(GetArray(*algorithm, 0, "dynamics.input_mean")[1], 50, 1.5);
  EXPECT_NEAR(GetArray(*algorithm, 0, "dynamics.input_std")[1], 40 / std::sqrt(12.0), 1);
  EXPECT_NEAR(GetArray(*algorithm, 0, "dynamics.input_std")[6], 2 / std::sqrt(12.0), 0.05);
  Batch fresh = RandomBatch(config, 99);
  double error = 0, held = 0;
  for (int r = 0; r < 40; ++r) {
    float* const s = &fresh.observation[r * 5];
    s[1] = 50 + 10 * s[1];
    const float* const a = &fresh.action[r * 2];
    const Numbers input{s[0], s[1], s[2], s[3], s[4], a[0], a[1]};
    for (int net = 0; net < 2; ++net) {
      const Numbers out = Predict(*algorithm, net, input);
      const double wanted_reward = reward(s, a), wanted_change = a[0] + 0.5 * s[4];
      error += std::pow(out[0] - wanted_reward, 2) + std::pow(out[4] - wanted_change, 2);
      held += std::pow(wanted_reward, 2) + std::pow(wanted_change, 2);
      EXPECT_LT(out[6 + 2], -1) << "s_1 never changes, so its variance is small";
    }
  }
  EXPECT_LT(error, 0.1 * held) << "of the variance that there is to explain";
}

TEST(SafeLoop, CriticsStartWithWeightsWithinOneOverTheRootOfTheirInputs) {
  const auto algorithm = MakeAlgorithm(SmallConfig("safe_loop", 1));
  const double inputs[] = {5 + 2, 24, 16};
  for (const std::string critic : {"critic.0.", "critic.1.", "target_critic.0.", "target_critic.1."}) {
    for (int layer = 0; layer < 3; ++layer) {
      const std::string name = critic + std::to_string(layer) + ".weight";
      const double bound = 1 / std::sqrt(inputs[layer]);
      double largest = 0;
      for (const float value : GetArray(*algorithm, 0, name)) largest = std::fmax(largest, std::abs(value));
      EXPECT_LE(largest, bound * 1.000001) << name;
      EXPECT_GT(largest, bound * 0.6) << name;
    }
  }
}

TEST(SafeLoop, RefusesPeriodsThatItsRowsDoNotDivide) {
  AlgorithmConfig config = SmallConfig("safe_loop", 1);
  config.planning.set_model_period(50);
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
  config = SmallConfig("safe_loop", 1);
  config.epoch_rows = 0;
  EXPECT_THROW(MakeAlgorithm(config), std::invalid_argument);
}

TEST(SafeLoop, RefusesAMemoryThatDoesNotHoldTheRowsOfAnUpdate) {
  AlgorithmConfig config = SmallConfig("safe_loop", 1);
  config.memory_rows = 39;
  try {
    MakeAlgorithm(config);
    FAIL() << "accepted a memory of 39 rows for updates of 40";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "replay.capacity: 39 is below the 40 rows that safe_loop takes an update");
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
