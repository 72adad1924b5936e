// Compares both implementations of the kernels with their definitions and with finite differences in float64.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "learner/algorithms/cost_kernels.h"
#include "learner/algorithms/critic_kernels.h"
#include "learner/algorithms/quantile_kernels.h"
#include "learner/algorithms/sac_kernels.h"
#include "learner/algorithms/safe_layer_kernels.h"
#include "learner/nn/kernels.h"
#include "learner/nn/named_stream.h"
#include "tests/learner/nn/kernels_testing.h"

namespace datacom::learner {
namespace {

INSTANTIATE_TEST_SUITE_P(All, EveryKernels, ::testing::Values("fused", "tensor"),
                         [](const auto& info) { return info.param; });

TEST_P(EveryKernels, PerceptronGradientsMatchFiniteDifferences) {
  for (Activation activation : {Activation::kRelu, Activation::kSigmoid, Activation::kTanh}) {
    for (int out : {1, 3, 11}) {
      const int members = 2, rows = 7, in = 5, repeated = out % 3;  // 1, 0, 2
      ParameterLayout layout;
      layout.AddScalar("before");
      const MlpLayout net = layout.AddMlp("net", {in, 20, 9, out}, activation, {}, repeated);
      const int size = static_cast<int>(layout.size());
      const Numbers blocks = Random(1, members * size), inputs = Random(2, members * rows * in);
      const Numbers d_outs = Random(3, members * rows * out);
      const FloatView block = Upload(blocks, members, 1, size), x = Upload(inputs, members, rows, in);
      const FloatView d_out = Upload(d_outs, members, rows, out), gradient = kernels_->NewFloats(members, 1, size);
      const FloatView d_x = kernels_->NewFloats(members, rows, in),
                      d_part = Upload(Random(4, members * rows * 2), members, rows, 2);
      const Numbers before = Download(d_part);
      const MlpTape tape = kernels_->NewTape(net, members, rows);
      kernels_->Forward(block, net, x, tape);
      kernels_->Adjoint(block, net, d_out, tape);
      kernels_->InputGradient(block, net, tape, 0, /*add=*/false, d_x);
      kernels_->InputGradient(block, net, tape, 2, /*add=*/true, d_part);
      kernels_->ParameterGradient(net, x, d_out, tape, gradient);
      for (int m = 0; m < members; ++m) {
        const auto part = [m](const Numbers& all, int size) {
          return Numbers(all.begin() + m * size, all.begin() + (m + 1) * size);
        };
        const Numbers p = part(blocks, size), z = part(inputs, rows * in), d = part(d_outs, rows * out);
        ExpectNear(part(Download(tape.out), rows * out), Literal(net, p, z, rows), 1e-5, "output");
        const Numbers by_x = Differences([&](const Numbers& v) { return Inner(d, Literal(net, p, v, rows)); }, z);
        const Numbers by_p = Differences([&](const Numbers& v) { return Inner(d, Literal(net, v, z, rows)); }, p);
        ExpectNear(part(Download(d_x), rows * in), by_x, 2e-5, "input gradient");
        ExpectNear(part(Download(gradient), size), by_p, 2e-5, "parameter gradient");
        for (int r = 0; r < rows; ++r) {
          for (int c = 0; c < 2; ++c) {
            const size_t i = (m * rows + r) * 2 + c;
            EXPECT_NEAR(Download(d_part)[i] - before[i], by_x[r * in + 2 + c], 1e-4);
          }
        }
      }
    }
  }
}

// Of a perceptron with 64 inputs, 64 ReLU units and one output, for 64 rows. All inputs, parameters and gradients are
// 1.0001, which tf32 and bf16 round to 1.
Numbers Passes(const std::string& precision) {
  const std::unique_ptr<Kernels> kernels = MakeKernels("tensor", TestDevice("tensor"), precision);
  constexpr int kWide = 64;
  ParameterLayout layout;
  const MlpLayout net = layout.AddMlp("net", {kWide, kWide, 1}, Activation::kRelu, {});
  const int size = static_cast<int>(layout.size());
  const auto all = [&](int rows, int cols) { return kernels->NewFloats(1, rows, cols, 1.0001f); };
  const FloatView block = all(1, size), gradient = all(1, size), x = all(kWide, kWide), d_out = all(kWide, 1);
  const FloatView d_x = all(kWide, kWide), d_slope = all(kWide, kWide);
  const MlpTape tape = kernels->NewTape(net, 1, kWide), tangent = kernels->NewTape(net, 1, kWide);
  Numbers results;
  const auto add = [&](const FloatView& view, int64_t col = 0) {
    float first = 0;
    kernels->Download(view.Rows(0, 1).Cols(static_cast<int>(col), 1), &first);
    results.push_back(first);
  };
  kernels->Forward(block, net, x, tape);
  add(tape.hidden[0]), add(tape.out);
  kernels->Adjoint(block, net, d_out, tape);
  add(tape.adjoint[0]);
  kernels->InputGradient(block, net, tape, 0, /*add=*/true, d_x);
  add(d_x);
  kernels->InputGradient(block, net, tape, 0, /*add=*/false, d_x);
  add(d_x);
  kernels->ParameterGradient(net, x, d_out, tape, gradient);
  add(gradient, net.layers[0].weight), add(gradient, net.layers[1].weight), add(gradient, net.layers[1].bias);
  kernels->SlopeGradient(block, net, x, d_out, d_slope, tape, tangent, gradient);
  add(gradient, net.layers[0].weight), add(gradient, net.layers[1].weight);
  kernels->Tangent(block, block, net, x, tape, tangent);
  add(tangent.out);
  return results;
}

// By hand, with f = 1.0001: a unit is 64 f f + f, with bf16 64 + f. The gradient of the last bias, 64 f, has no
// product.
TEST(Precision, RoundsTheFactorsOfProductsAndNothingElse) {
  const Numbers exact{65.0129,  4162.242, 1.0002,   65.0193,  64.0192, 64.0192,
                      4161.242, 64.0064,  128.0448, 8258.061, 8323.484},
      rounded{65.0001, 4161.0001, 1, 65.0001, 64, 64, 4160, 64.0064, 128, 8256, 8321.0001};
  const Numbers float32 = Passes("float32"), bf16 = Passes("bf16");
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(float32[i], exact[i], 1e-5 * exact[i]) << i;
    EXPECT_NEAR(bf16[i], rounded[i], 1e-6 * rounded[i]) << i;
  }
  if (TestDevice("tensor") == "cuda") {
    EXPECT_NEAR(Passes("tf32")[0], 65.0001, 1e-4);
  }
}

TEST(Precision, IsRefusedByTheKernelsThatHaveOnlyFloat32) {
  EXPECT_THROW(MakeKernels("auto", "cpu", "bf16"), std::invalid_argument);
}

TEST_P(EveryKernels, NormalisedPerceptronsAndTheirGradientsAreThoseOfTheDefinition) {
  for (const int out : {1, 3, 11}) {
    const int members = 2, rows = 6, in = 5;
    ParameterLayout layout;
    layout.AddScalar("before");
    MlpLayout net = layout.AddMlp("net", {in, 37, 16, out}, Activation::kRelu, {});
    net.layer_norm = true;
    const int size = static_cast<int>(layout.size());
    const Numbers blocks = Random(1, members * size), inputs = Random(2, members * rows * in);
    const Numbers d_outs = Random(3, members * rows * out);
    const FloatView block = Upload(blocks, members, 1, size), x = Upload(inputs, members, rows, in);
    const FloatView d_out = Upload(d_outs, members, rows, out), gradient = kernels_->NewFloats(members, 1, size);
    const FloatView d_x = kernels_->NewFloats(members, rows, in);
    const MlpTape tape = kernels_->NewTape(net, members, rows);
    for (int repetition = 0; repetition < 2; ++repetition) {  // a new Forward follows the Adjoint
      kernels_->Forward(block, net, x, tape);
      kernels_->Adjoint(block, net, d_out, tape);
    }
    kernels_->InputGradient(block, net, tape, 0, /*add=*/false, d_x);
    kernels_->ParameterGradient(net, x, d_out, tape, gradient);
    const Numbers outputs = Download(tape.out), by_inputs = Download(d_x), by_blocks = Download(gradient);
    for (int m = 0; m < members; ++m) {
      const auto part = [m](const Numbers& all, int size) {
        return Numbers(all.begin() + m * size, all.begin() + (m + 1) * size);
      };
      const Numbers p = part(blocks, size), z = part(inputs, rows * in), d = part(d_outs, rows * out);
      ExpectNear(part(outputs, rows * out), Literal(net, p, z, rows), 1e-5, "output");
      const Numbers by_x = Differences([&](const Numbers& v) { return Inner(d, Literal(net, p, v, rows)); }, z);
      const Numbers by_p = Differences([&](const Numbers& v) { return Inner(d, Literal(net, v, z, rows)); }, p);
      ExpectNear(part(by_inputs, rows * in), by_x, 5e-5, "input gradient");
      ExpectNear(part(by_blocks, size), by_p, 5e-5, "parameter gradient");
    }
  }
}

// As the critics evaluate executed and stored actions in one pass, and take the gradients of each half by itself.
TEST_P(EveryKernels, HalvesOfANormalisedTapeHaveTheGradientsOfTapesOfTheirOwn) {
  ParameterLayout layout;
  MlpLayout net = layout.AddMlp("net", {4, 33, 24, 1}, Activation::kRelu, {});
  net.layer_norm = true;
  const int half = 5, size = static_cast<int>(layout.size());
  const FloatView block = Upload(Random(1, size), 1, 1, size), x = Upload(Random(2, 2 * half * 4), 1, 2 * half, 4);
  const FloatView d_out = Upload(Random(3, half), 1, half, 1), gradient = kernels_->NewFloats(1, 1, size);
  const MlpTape both = kernels_->NewTape(net, 1, 2 * half);
  kernels_->Forward(block, net, x, both);
  for (const int first : {0, half}) {
    const MlpTape part = both.Rows(first, half), own = kernels_->NewTape(net, 1, half);
    kernels_->Forward(block, net, x.Rows(first, half), own);
    std::vector<Numbers> gradients;
    for (const MlpTape* const tape : {&part, &own}) {
      kernels_->Adjoint(block, net, d_out, *tape);
      kernels_->ParameterGradient(net, x.Rows(first, half), d_out, *tape, gradient);
      gradients.push_back(Download(gradient));
    }
    ExpectNear(gradients[0], gradients[1], 1e-6, "half");
  }
}

TEST_P(EveryKernels, OnlyReluUnitsWithoutRepeatedInputsAreNormalised) {
  for (const auto& [activation, repeated] : {std::pair(Activation::kTanh, 0), std::pair(Activation::kRelu, 2)}) {
    ParameterLayout layout;
    MlpLayout net = layout.AddMlp("net", {4, 8, 8, 1}, activation, {}, repeated);
    net.layer_norm = true;
    EXPECT_THROW(kernels_->NewTape(net, 1, 3), std::invalid_argument);
  }
}

TEST_P(EveryKernels, ScaledAdjointsOfAUnitOutputAreThoseOfAnObjective) {
  ParameterLayout layout;
  const MlpLayout net = layout.AddMlp("net", {3, 16, 16, 1}, Activation::kSigmoid, {1.0});
  const int rows = 9, size = static_cast<int>(layout.size());
  const FloatView block = Upload(Random(1, size), 1, 1, size), x = Upload(Random(2, rows * 3), 1, rows, 3);
  const FloatView ones = Upload(Numbers(rows, 1.0), 1, rows, 1), d_out = Upload(Random(3, rows), 1, rows, 1);
  const MlpTape tape = kernels_->NewTape(net, 1, rows);
  kernels_->Forward(block, net, x, tape);
  kernels_->Adjoint(block, net, d_out, tape);
  const Numbers direct = Download(tape.adjoint[0]);
  kernels_->Adjoint(block, net, ones, tape);
  kernels_->ScaleAdjoint(d_out, tape);
  ExpectNear(Download(tape.adjoint[0]), direct, 1e-5, "adjoint");
}

TEST_P(EveryKernels, SampleGradientMatchesFiniteDifferences) {
  const int rows = 6, n = 3;
  const Numbers mean = Random(1, rows * n), log_std = Random(2, rows * n), noise = Random(3, rows * n, 2);
  const Numbers half{1, 2, 0.5}, centre{0, 0.3, -1}, d_u = Random(4, rows * n), log_alpha{-0.5};
  const auto objective = [&](const Numbers& mu, const Numbers& l) {
    double sum = 0;
    for (int i = 0; i < rows * n; ++i) {
      const double t = std::tanh(mu[i] + std::exp(l[i]) * noise[i]);
      const double log_pi =
          -0.5 * noise[i] * noise[i] - l[i] - 0.5 * std::log(2 * std::acos(-1.0)) - std::log(1 - t * t + 1e-6);
      sum += d_u[i] * (t * half[i % n] + centre[i % n]) + std::exp(log_alpha[0]) / rows * log_pi;
    }
    return sum;
  };
  const ActionBox box{Upload(half, 1, 1, n), Upload(centre, 1, 1, n)};
  const ActionSample sample{kernels_->NewFloats(1, rows, n), kernels_->NewFloats(1, rows, n),
                            kernels_->NewFloats(1, rows, 1)};
  const FloatView d_mean = kernels_->NewFloats(1, rows, n), d_log_std = kernels_->NewFloats(1, rows, n);
  const FloatView stds = Upload(log_std, 1, rows, n), noises = Upload(noise, 1, rows, n);
  kernels_->Group<SacKernels>()->SampleAction(Upload(mean, 1, rows, n), stds, noises, box, sample);
  kernels_->Group<SacKernels>()->SampleActionGradient(stds, noises, box, sample, Upload(d_u, 1, rows, n),
                                                      Upload(log_alpha, 1, 1, 1), d_mean, d_log_std);
  ExpectNear(Download(d_mean), Differences([&](const Numbers& v) { return objective(v, log_std); }, mean), 1e-4,
             "mean");
  ExpectNear(Download(d_log_std), Differences([&](const Numbers& v) { return objective(mean, v); }, log_std), 1e-4,
             "log std");
}

TEST_P(EveryKernels, ImitationIsTheMeanSquaredDistanceInHalvesOfTheBoxAndItsGradientMatchesFiniteDifferences) {
  const int rows = 5, n = 2;
  const Numbers u = Random(1, 2 * rows * n), command = Random(2, 2 * rows * n), half{0.5, 2};
  const Numbers weights{3, 0}, d_before = Random(3, 2 * rows * n);
  const auto loss_of = [&](int member, const Numbers& x) {
    double sum = 0;
    for (int i = 0; i < rows * n; ++i) {
      sum += std::pow((x[i] - command[member * rows * n + i]) / half[i % n], 2);
    }
    return weights[member] * sum / rows;
  };
  const FloatView d_u = Upload(d_before, 2, rows, n);
  const DoubleView loss = UploadDoubles({10, 20}, 2, 1, 1);
  const ActionBox box{Upload(half, 1, 1, n), Upload({0, 0}, 1, 1, n)};
  kernels_->Group<SacKernels>()->Imitate(Upload(u, 2, rows, n), Upload(command, 2, rows, n),
                                         UploadDoubles(weights, 2, 1, 1), box, d_u, loss);
  for (int m = 0; m < 2; ++m) {
    const auto of_member = [&](const Numbers& all) {
      return Numbers(all.begin() + m * rows * n, all.begin() + (m + 1) * rows * n);
    };
    EXPECT_NEAR(Download(loss)[m], (m == 0 ? 10 : 20) + loss_of(m, of_member(u)), 1e-5);
    Numbers added = of_member(Download(d_u));
    for (int i = 0; i < rows * n; ++i) added[i] -= of_member(d_before)[i];
    ExpectNear(added, Differences([&](const Numbers& x) { return loss_of(m, x); }, of_member(u)), 1e-5, "gradient");
  }
}

TEST_P(EveryKernels, LogStdOutsideItsRangePassesNoGradient) {
  const FloatView log_std = Upload({-21, 3, 0}, 1, 3, 1), zero = Upload({0, 0, 0}, 1, 3, 1), one = Upload({1}, 1, 1, 1);
  const ActionBox box{one, Upload({0}, 1, 1, 1)};
  const ActionSample sample{kernels_->NewFloats(1, 3, 1), kernels_->NewFloats(1, 3, 1), kernels_->NewFloats(1, 3, 1)};
  const FloatView d_mean = kernels_->NewFloats(1, 3, 1), d_log_std = kernels_->NewFloats(1, 3, 1);
  kernels_->Group<SacKernels>()->SampleAction(zero, log_std, zero, box, sample);
  kernels_->Group<SacKernels>()->SampleActionGradient(log_std, zero, box, sample, zero, Upload({0}, 1, 1, 1), d_mean,
                                                      d_log_std);
  const Numbers d = Download(d_log_std);
  EXPECT_EQ(d[0], 0);
  EXPECT_EQ(d[1], 0);
  EXPECT_NEAR(d[2], -1.0 / 3, 1e-6);
}

// SafeLayerTD3's actions (docs/algorithms.md 12.2), in a box that is not centred.
TEST_P(EveryKernels, DeterministicActionsFollowTheirDefinition) {
  const int rows = 9, n = 2;
  const Numbers half{0.75, 1.5}, centre{0.25, -1}, raw = Random(1, rows * n, 2), noise = Random(2, rows * n, 4);
  const ActionBox box{Upload(half, 1, 1, n), Upload(centre, 1, 1, n)};
  const FloatView action = kernels_->NewFloats(1, rows, n), scaled = kernels_->NewFloats(1, rows, n);
  kernels_->Group<SafeLayerKernels>()->DeterministicAction(Upload(raw, 1, rows, n), box, action);
  kernels_->Group<SafeLayerKernels>()->ActionInHalfRanges(action, box, scaled);
  const auto literal = [&](const Numbers& at) {
    Numbers result;
    for (size_t i = 0; i < at.size(); ++i) result.push_back(std::tanh(at[i]) + centre[i % n] / half[i % n]);
    return result;
  };
  ExpectNear(Download(scaled), literal(raw), 1e-6, "in half ranges");
  const Numbers d_scaled = Random(3, rows * n);
  const FloatView d_raw = kernels_->NewFloats(1, rows, n);
  kernels_->Group<SafeLayerKernels>()->DeterministicActionGradient(action, box, Upload(d_scaled, 1, rows, n), d_raw);
  ExpectNear(Download(d_raw), Differences([&](const Numbers& at) { return Inner(d_scaled, literal(at)); }, raw), 1e-5,
             "gradient");

  kernels_->Group<SafeLayerKernels>()->SmoothAction(Upload(noise, 1, rows, n), UploadDoubles({0.2}, 1, 1, 1),
                                                    UploadDoubles({0.5}, 1, 1, 1), box, action);
  const Numbers smooth = Download(action);
  int cut = 0, boxed = 0;
  for (int i = 0; i < rows * n; ++i) {
    const double drawn = std::min(std::max(0.2 * noise[i], -0.5), 0.5), low = centre[i % n] - half[i % n],
                 high = centre[i % n] + half[i % n], moved = std::tanh(raw[i]) * half[i % n] + centre[i % n] + drawn;
    EXPECT_NEAR(smooth[i], std::min(std::max(moved, low), high), 1e-6) << i;
    cut += std::abs(drawn) == 0.5, boxed += moved < low || moved > high;
  }
  EXPECT_GT(cut, 0);
  EXPECT_GT(boxed, 0);
}

TEST_P(EveryKernels, ATargetTakesTheSmallerCriticAndStopsAtAbsorbingStates) {
  const FloatView y = kernels_->NewFloats(1, 3, 1);
  const TargetStep step{Upload({1, 2, 3}, 1, 3, 1), Upload({0, 0, 1}, 1, 3, 1), Upload({1}, 1, 1, 1),
                        Upload({-1e9}, 1, 1, 1),    Upload({1e9}, 1, 1, 1),     0.5};
  const TwinValues next{Upload({5, -1, 7}, 1, 3, 1), Upload({4, 2, 8}, 1, 3, 1), Upload({0}, 1, 1, 1)};
  kernels_->Group<CriticKernels>()->Target(step, next, {}, {}, y);
  EXPECT_EQ(Download(y), (Numbers{3, 1.5, 3}));
  kernels_->Group<CriticKernels>()->Target(step, next, Upload({2, -2, 1}, 1, 3, 1), Upload({0}, 1, 1, 1), y);
  EXPECT_EQ(Download(y), (Numbers{2, 2.5, 3})) << "alpha is 1";
}

TEST_P(EveryKernels, ATargetHasScaledRewardsAndStaysInItsRangeAndKeepsNaN) {
  const FloatView y = kernels_->NewFloats(2, 3, 1), zero = Upload({0, 0, 0, 0, 0, 0}, 2, 3, 1);
  const TargetStep step{Upload({4, -90, 90, 4, -7, NAN}, 2, 3, 1),
                        zero,
                        Upload({0.5, 2}, 2, 1, 1),
                        Upload({-5, -6}, 2, 1, 1),
                        Upload({10, 10}, 2, 1, 1),
                        0.5};
  const TwinValues next{Upload({2, 2, 2, -1, -1, -1}, 2, 3, 1), Upload({2, 2, 2, -1, -1, -1}, 2, 3, 1),
                        Upload({0, 0.5}, 2, 1, 1)};
  const Numbers expected{3, -5, 10, 7.5, -6};
  for (const bool soft : {false, true}) {
    if (soft) {
      kernels_->Group<CriticKernels>()->Target(step, next, zero, Upload({0, 0}, 2, 1, 1), y);
    } else {
      kernels_->Group<CriticKernels>()->Target(step, next, {}, {}, y);
    }
    const Numbers values = Download(y);
    ASSERT_EQ(values.size(), 6u);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(values[i], expected[i]) << i;
    EXPECT_TRUE(std::isnan(values[5]));
  }
}

TEST_P(EveryKernels, TheValueOfAPairIsTheSmallerOnePlusAShareOfTheDifference) {
  const FloatView y = kernels_->NewFloats(4, 2, 1), zero = Upload(Numbers(8, 0), 4, 2, 1);
  const FloatView one = Upload(Numbers(4, 1), 4, 1, 1);
  const TargetStep step{zero, zero, one, Upload(Numbers(4, -1e9), 4, 1, 1), Upload(Numbers(4, 1e9), 4, 1, 1), 1};
  const TwinValues next{Upload({1, 6, 1, 6, 1, 6, 1, NAN}, 4, 2, 1), Upload({5, -2, 5, -2, 5, -2, NAN, 6}, 4, 2, 1),
                        Upload({0, 0.5, 0.25, 0.5}, 4, 1, 1)};
  kernels_->Group<CriticKernels>()->Target(step, next, {}, {}, y);
  const Numbers values = Download(y);
  EXPECT_EQ(Numbers(values.begin(), values.begin() + 6), (Numbers{1, -2, 3, 2, 2, 0}));
  EXPECT_TRUE(std::isnan(values[6]) && std::isnan(values[7]));
}

TEST_P(EveryKernels, TheActorsGradientIsSharedByTheCriticsAsInTheValueOfThePair) {
  const Numbers a{1, 6, -2}, b{5, -2, -2.5}, log_pi{0.5, -1, 2};
  for (const double pessimism : {1.0, 0.25, 0.0}) {
    const auto loss_of = [&](const Numbers& q0, const Numbers& q1) {
      double sum = 0;
      for (int r = 0; r < 3; ++r) {
        sum += 0.5 * log_pi[r] - ((q0[r] + q1[r]) / 2 - pessimism * std::abs(q0[r] - q1[r]) / 2);
      }
      return sum / 3;
    };
    const FloatView d_q0 = kernels_->NewFloats(1, 3, 1), d_q1 = kernels_->NewFloats(1, 3, 1);
    const DoubleView loss = kernels_->NewDoubles(1, 1, 1), mean = kernels_->NewDoubles(1, 1, 1);
    kernels_->Group<SacKernels>()->ActorLoss(
        {Upload(a, 1, 3, 1), Upload(b, 1, 3, 1), Upload({(1 - pessimism) / 2}, 1, 1, 1)}, Upload(log_pi, 1, 3, 1),
        Upload({std::log(0.5)}, 1, 1, 1), d_q0, d_q1, loss, mean);
    EXPECT_NEAR(Download(loss)[0], loss_of(a, b), 1e-6) << pessimism;
    EXPECT_NEAR(Download(mean)[0], 0.5, 1e-7);
    ExpectNear(Download(d_q0), Differences([&](const Numbers& q) { return loss_of(q, b); }, a), 1e-6, "first critic");
    ExpectNear(Download(d_q1), Differences([&](const Numbers& q) { return loss_of(a, q); }, b), 1e-6, "second critic");
  }
}

TEST_P(EveryKernels, RiskIsMeanPlusMarginTimesDeviation) {
  const Numbers mean{-1, 0.5, 25, 2}, log_std{-1, 0, 1, 5};
  const FloatView gradient_mean = Upload({1, 1, 1, 1}, 1, 4, 1), gradient_log_std = Upload({2, 2, 2, 2}, 1, 4, 1);
  const DoubleView k = kernels_->NewDoubles(1, 4, 1), J = kernels_->NewDoubles(1, 4, 1);
  kernels_->Group<CostKernels>()->GaussianRisk(Upload(mean, 1, 4, 1), Upload(log_std, 1, 4, 1), gradient_mean,
                                               gradient_log_std, Upload({0.195}, 1, 1, 1),
                                               UploadDoubles({0.7}, 1, 1, 1), k, J);
  for (int r = 0; r < 4; ++r) {
    const double spread = 0.195 * std::exp(std::min(log_std[r], 2.0));
    EXPECT_NEAR(Download(k)[r], std::log1p(std::exp(mean[r])) + spread - 0.7, 1e-5);
    const double slope = log_std[r] <= 2 ? 2 * spread : 0;  // clamped: no gradient
    EXPECT_NEAR(Download(J)[r], 1 / (1 + std::exp(-mean[r])) + slope, 1e-5);
  }
}

// By hand: member 0 has sums 6 of the objective's gradient and 3 of the cost's, so the weight is 0.5 x 6 / 3 = 1.
// Member 1 has no multiplier and keeps its numbers beside a cost that is not finite; the cost of member 2 is constant.
TEST_P(EveryKernels, APricedGradientHasTheSizeOfTheObjectivesTimesTheMultiplier) {
  const float nan = std::nanf("");
  const FloatView action = Upload({1, -2, 3, 0, 1, -2, 3, 0, 1, -2, 3, 0}, 3, 2, 2);
  const FloatView cost = Upload({-1, 0, 0.5, 1.5, nan, 1, 2, 3, 0, 0, 0, 0}, 3, 2, 2);
  kernels_->Group<CostKernels>()->AddPriced(UploadDoubles({0.5, 0, 0.5}, 3, 1, 1), cost, action);
  EXPECT_EQ(Download(action), (Numbers{0, -2, 3.5, 1.5, 1, -2, 3, 0, 1, -2, 3, 0}));
}

TEST_P(EveryKernels, ASaturatedActionHasTheDensityOfItsDefinition) {
  const FloatView mean = Upload({50}, 1, 1, 1), zero = Upload({0}, 1, 1, 1);
  const ActionSample sample{kernels_->NewFloats(1, 1, 1), kernels_->NewFloats(1, 1, 1), kernels_->NewFloats(1, 1, 1)};
  kernels_->Group<SacKernels>()->SampleAction(mean, zero, zero, {Upload({1}, 1, 1, 1), zero}, sample);
  EXPECT_EQ(Download(sample.u)[0], 1);
  EXPECT_NEAR(Download(sample.log_pi)[0], -0.5 * std::log(2 * std::acos(-1.0)) - std::log(1e-6), 1e-4);
}

TEST_P(EveryKernels, CriticValuesAreMeanSmallestAndGapOfTheCriticsInTheTasksUnit) {
  const DoubleView mean = kernels_->NewDoubles(2, 1, 1), least = kernels_->NewDoubles(2, 1, 1),
                   gap = kernels_->NewDoubles(2, 1, 1);
  const FloatView q = Upload({1, 2, 3, 4, -2, 4, 5, 5, 5, 5, 6, 4}, 2, 2, 3);  // of each member: first net, second net
  kernels_->Group<CriticKernels>()->CriticValues(q, UploadDoubles({0.5, 1}, 2, 1, 1), mean, least, gap);
  EXPECT_EQ(Download(mean), (Numbers{4, 5}));
  EXPECT_EQ(Download(least), (Numbers{-4, 4}));
  EXPECT_NEAR(Download(gap)[0], 16.0 / 3, 1e-15);
  EXPECT_NEAR(Download(gap)[1], 2.0 / 3, 1e-15);
  kernels_->Group<CriticKernels>()->CriticValues(q.Rows(1, 1), UploadDoubles({1, 1}, 2, 1, 1), mean, least, gap);
  EXPECT_EQ(Download(mean), (Numbers{2, 5})) << "of one net";
  EXPECT_EQ(Download(least), (Numbers{-2, 4}));
  EXPECT_EQ(Download(gap), (Numbers{0, 0}));
}

// Errors of the nets: 1, -2, 3 and 0, 4, -1 of member 0; the targets are a column of a wider array.
TEST_P(EveryKernels, TheSquaredErrorIsTheMeanOverRowsAndNetsAndHasTheGradientOfEachNetsOwnMean) {
  const FloatView y = Upload({1, 9, 2, 9, 3, 9, 0, 9, 0, 9, 0, 9}, 2, 3, 2).Cols(0, 1);
  const FloatView q = Upload({2, 0, 6, 1, 6, 2, 0, 0, 3, 0, 0, 0}, 2, 2, 3), d_q = kernels_->NewFloats(2, 2, 3);
  const DoubleView loss = UploadDoubles({7, 7}, 2, 1, 1);
  kernels_->Group<CriticKernels>()->SquaredLoss(q, y, d_q, loss);
  ExpectNear(Download(loss), {31.0 / 6, 9.0 / 6}, 1e-6, "loss");
  ExpectNear(Download(d_q), {2.0 / 3, -4.0 / 3, 2, 0, 8.0 / 3, -2.0 / 3, 0, 0, 2, 0, 0, 0}, 1e-6, "gradient");
}

TEST_P(EveryKernels, LevelFeaturesAreCosinesOfWholeMultiples) {
  const Numbers levels{0, 1, 0.5, 0.25f, 0.1f, 1e-7f, 0.99999994f, 0.7310586f};
  const int members = 2, rows = 2, count = 2, features = 64;
  const FloatView out = kernels_->NewFloats(members, rows * count, features);
  kernels_->Group<QuantileKernels>()->LevelFeatures(Upload(levels, members, rows, count), out);
  const Numbers values = Download(out);
  const double tolerance = GetParam() == "fused" ? 3e-7 : 3e-5;  // the tensor kernels round the angle first
  for (size_t i = 0; i < values.size(); ++i) {
    const double level = static_cast<float>(levels[i / features]);
    EXPECT_NEAR(values[i], std::cos(std::acos(-1.0) * static_cast<double>(i % features) * level), tolerance)
        << "level " << level << " multiple " << i % features;
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
