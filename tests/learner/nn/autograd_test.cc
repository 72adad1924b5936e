// Compares the kernels' first-order and second-order gradients (the derivative of an input gradient) with LibTorch's
// autograd in float64, on the same weights.
#include <torch/torch.h>

#include <vector>

#include "gtest/gtest.h"
#include "learner/nn/kernels.h"
#include "tests/learner/nn/kernels_testing.h"

namespace datacom::learner {
namespace {

struct Perceptron {
  std::vector<torch::Tensor> weights, biases;  // leaves
  Activation hidden;
  bool layer_norm;

  Perceptron(const MlpLayout& net, const Numbers& block) : hidden(net.hidden), layer_norm(net.layer_norm) {
    for (const MlpLayer& layer : net.layers) {
      weights.push_back(Leaf(block.data() + layer.weight, {layer.in, layer.out}));
      biases.push_back(Leaf(block.data() + layer.bias, {layer.out}));
    }
  }
  static torch::Tensor Leaf(const double* data, const std::vector<int64_t>& shape) {
    return torch::from_blob(const_cast<double*>(data), shape, torch::kDouble).clone().requires_grad_();
  }
  torch::Tensor operator()(torch::Tensor x) const {
    for (size_t i = 0; i < weights.size(); ++i) {
      x = torch::matmul(x, weights[i]) + biases[i];
      if (i + 1 == weights.size()) return x;
      if (layer_norm) x = at::layer_norm(x, {x.size(-1)}, {}, {}, /*eps=*/1e-5);
      x = hidden == Activation::kRelu   ? torch::relu(x)
          : hidden == Activation::kTanh ? torch::tanh(x)
                                        : torch::sigmoid(x);
    }
    return x;
  }
};

Numbers Flat(torch::Tensor values) {
  values = values.detach().contiguous().view({-1});
  return Numbers(values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
}

// The gradient of a net's block, as autograd has left it in the leaves.
void ExpectGradient(const Numbers& ours, const MlpLayout& net, const Perceptron& oracle) {
  const auto expect_part = [&](int64_t first, const torch::Tensor& leaf, const char* what) {
    const Numbers expected = Flat(leaf.grad());
    ExpectNear(Numbers(ours.begin() + first, ours.begin() + first + leaf.numel()), expected, 1e-5, what);
  };
  for (size_t i = 0; i < net.layers.size(); ++i) {
    expect_part(net.layers[i].weight, oracle.weights[i], "weight");
    expect_part(net.layers[i].bias, oracle.biases[i], "bias");
  }
}

class AutogradTest : public EveryKernels {
 protected:
  static constexpr int kRows = 8, kIn = 5;
  // dy/dx of a net with one output at x, by the kernels.
  Numbers InputGradient(const MlpLayout& net, const FloatView& block, const Numbers& x) {
    const MlpTape tape = kernels_->NewTape(net, 1, kRows);
    const FloatView d_x = kernels_->NewFloats(1, kRows, kIn);
    kernels_->Forward(block, net, Upload(x, 1, kRows, kIn), tape);
    kernels_->Adjoint(block, net, Upload(Numbers(kRows, 1.0), 1, kRows, 1), tape);
    kernels_->InputGradient(block, net, tape, 0, /*add=*/false, d_x);
    return Download(d_x);
  }
  void ExpectFirstOrderGradientsOfAutograd(const MlpLayout& net, int size) {
    const int out = net.out();
    const Numbers values = Random(1, size), inputs = Random(2, kRows * kIn), d_outs = Random(3, kRows * out);
    const FloatView block = Upload(values, 1, 1, size), x = Upload(inputs, 1, kRows, kIn),
                    d_out = Upload(d_outs, 1, kRows, out);
    const FloatView gradient = kernels_->NewFloats(1, 1, size), d_x = kernels_->NewFloats(1, kRows, kIn);
    const MlpTape tape = kernels_->NewTape(net, 1, kRows);
    kernels_->Forward(block, net, x, tape);
    kernels_->Adjoint(block, net, d_out, tape);
    kernels_->ParameterGradient(net, x, d_out, tape, gradient);
    kernels_->InputGradient(block, net, tape, 0, /*add=*/false, d_x);

    const Perceptron oracle(net, values);
    const torch::Tensor leaf = Perceptron::Leaf(inputs.data(), {kRows, kIn}), y = oracle(leaf);
    ExpectNear(Download(tape.out), Flat(y), 1e-5, "output");
    (y * Perceptron::Leaf(d_outs.data(), {kRows, out}).detach()).sum().backward();
    ExpectGradient(Download(gradient), net, oracle);
    ExpectNear(Download(d_x), Flat(leaf.grad()), 1e-5, "input gradient");
  }
};
INSTANTIATE_TEST_SUITE_P(All, AutogradTest, ::testing::Values("fused", "tensor"),
                         [](const auto& info) { return info.param; });

TEST_P(AutogradTest, FirstOrderGradientsMatchAutograd) {
  for (Activation activation : {Activation::kRelu, Activation::kSigmoid, Activation::kTanh}) {
    ParameterLayout layout;
    const MlpLayout net = layout.AddMlp("net", {kIn, 32, 24, 2}, activation, {1.0});
    ExpectFirstOrderGradientsOfAutograd(net, static_cast<int>(layout.size()));
  }
}

TEST_P(AutogradTest, GradientsOfNormalisedLayersMatchAutogradOfLayerNorm) {
  for (const std::vector<int>& hidden : {std::vector<int>{128, 128}, {32, 24}, {19, 7, 40}}) {
    for (const int out : {1, 2, 12}) {
      ParameterLayout layout;
      MlpLayout net = layout.AddMlp("net", Widths(kIn, hidden, out), Activation::kRelu, {1.4});
      net.layer_norm = true;
      ExpectFirstOrderGradientsOfAutograd(net, static_cast<int>(layout.size()));
    }
  }
}

// The derivative of <v, dy/dx> for x: autograd applied twice, compared with the change of the kernels' gradient along
// v.
TEST_P(AutogradTest, SecondOrderGradientsMatchAutograd) {
  ParameterLayout layout;
  const MlpLayout net = layout.AddMlp("net", {kIn, 32, 24, 1}, Activation::kSigmoid, {1.0});
  const int size = static_cast<int>(layout.size());
  Numbers values = Random(1, size);
  for (double& value : values) value *= 2;
  const Numbers inputs = Random(2, kRows * kIn), direction = Random(3, kRows * kIn);
  const FloatView block = Upload(values, 1, 1, size);

  const Perceptron oracle(net, values);
  const torch::Tensor x = Perceptron::Leaf(inputs.data(), {kRows, kIn});
  const torch::Tensor v = Perceptron::Leaf(direction.data(), {kRows, kIn}).detach();
  const torch::Tensor first = torch::autograd::grad({oracle(x).sum()}, {x}, {}, true, /*create_graph=*/true)[0];
  ExpectNear(InputGradient(net, block, inputs), Flat(first), 1e-5, "input gradient");
  const torch::Tensor second = torch::autograd::grad({(first * v).sum()}, {x})[0];

  const double step = 1.0 / 64;
  Numbers above = inputs, below = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) above[i] += step * direction[i], below[i] -= step * direction[i];
  Numbers slope = InputGradient(net, block, above);
  const Numbers lower = InputGradient(net, block, below);
  for (size_t i = 0; i < slope.size(); ++i) slope[i] = (slope[i] - lower[i]) / (2 * step);
  ExpectNear(slope, Flat(second), 5e-3, "second order");
}

// The gradient of <a, y> + <v, dy/dx> for the parameters; autograd computes it by differentiating a gradient.
TEST_P(AutogradTest, SlopeGradientsMatchAutogradTwice) {
  for (const std::vector<int>& widths : {std::vector<int>{kIn, 32, 24, 1}, {kIn, 16, 1}, {kIn, 8, 8, 8, 1}}) {
    ParameterLayout layout;
    const MlpLayout net = layout.AddMlp("net", widths, Activation::kRelu, {1.4});
    const int size = static_cast<int>(layout.size());
    const Numbers values = Random(1, size), inputs = Random(2, kRows * kIn);
    const Numbers d_values = Random(3, kRows), d_slopes = Random(4, kRows * kIn);
    const FloatView block = Upload(values, 1, 1, size), x = Upload(inputs, 1, kRows, kIn);
    const FloatView gradient = kernels_->NewFloats(1, 1, size);
    const MlpTape tape = kernels_->NewTape(net, 1, kRows), tangent = kernels_->NewTape(net, 1, kRows);
    kernels_->Forward(block, net, x, tape);
    kernels_->Adjoint(block, net, Upload(Numbers(kRows, 1.0), 1, kRows, 1), tape);
    kernels_->SlopeGradient(block, net, x, Upload(d_values, 1, kRows, 1), Upload(d_slopes, 1, kRows, kIn), tape,
                            tangent, gradient);

    const Perceptron oracle(net, values);
    const torch::Tensor leaf = Perceptron::Leaf(inputs.data(), {kRows, kIn}), y = oracle(leaf);
    const torch::Tensor slope = torch::autograd::grad({y.sum()}, {leaf}, {}, true, /*create_graph=*/true)[0];
    ((y * Perceptron::Leaf(d_values.data(), {kRows, 1}).detach()).sum() +
     (slope * Perceptron::Leaf(d_slopes.data(), {kRows, kIn}).detach()).sum())
        .backward();
    ExpectGradient(Download(gradient), net, oracle);
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
