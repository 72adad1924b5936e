// Compares the kernels' first-order and second-order gradients (the derivative of an input gradient) with LibTorch's
// autograd in float64, on the same weights.
#include <torch/torch.h>

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "learner/nn/kernels.h"
#include "learner/nn/named_stream.h"

namespace datacom::learner {
namespace {

struct Perceptron {
  std::vector<torch::Tensor> weights, biases;  // leaves
  Activation hidden;

  Perceptron(const MlpLayout& net, const std::vector<float>& block) : hidden(net.hidden) {
    for (const MlpLayer& layer : net.layers) {
      weights.push_back(Leaf(block.data() + layer.weight, {layer.in, layer.out}));
      biases.push_back(Leaf(block.data() + layer.bias, {layer.out}));
    }
  }
  static torch::Tensor Leaf(const float* data, const std::vector<int64_t>& shape) {
    return torch::from_blob(const_cast<float*>(data), shape).to(torch::kDouble).clone().requires_grad_();
  }
  torch::Tensor operator()(torch::Tensor x) const {
    for (size_t i = 0; i < weights.size(); ++i) {
      x = torch::matmul(x, weights[i]) + biases[i];
      if (i + 1 == weights.size()) return x;
      x = hidden == Activation::kRelu   ? torch::relu(x)
          : hidden == Activation::kTanh ? torch::tanh(x)
                                        : torch::sigmoid(x);
    }
    return x;
  }
};

std::vector<float> Random(uint64_t key, size_t count) {
  NamedStream stream(key);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(stream.Uniform(-1, 1));
  return values;
}

class EveryKernels : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr int kRows = 8, kIn = 5;
  EveryKernels() : kernels_(MakeKernels(GetParam(), "cpu")) {}
  FloatView Upload(const std::vector<float>& values, int rows, int cols) {
    const FloatView view = kernels_->NewFloats(1, rows, cols);
    kernels_->Upload(values.data(), view);
    return view;
  }
  std::vector<float> Download(const FloatView& view) {
    std::vector<float> values(static_cast<size_t>(view.rows) * view.cols);
    kernels_->Download(view, values.data());
    return values;
  }
  // dy/dx of a net with one output at x, by the kernels.
  std::vector<float> InputGradient(const MlpLayout& net, const FloatView& block, const std::vector<float>& x) {
    const MlpTape tape = kernels_->NewTape(net, 1, kRows);
    const FloatView d_x = kernels_->NewFloats(1, kRows, kIn);
    kernels_->Forward(block, net, Upload(x, kRows, kIn), tape);
    kernels_->Adjoint(block, net, Upload(std::vector<float>(kRows, 1.0f), kRows, 1), tape);
    kernels_->InputGradient(block, net, tape, 0, /*add=*/false, d_x);
    return Download(d_x);
  }
  std::unique_ptr<Kernels> kernels_;
};
INSTANTIATE_TEST_SUITE_P(All, EveryKernels, ::testing::Values("fused", "tensor"),
                         [](const auto& info) { return info.param; });

void ExpectNear(const float* ours, torch::Tensor reference, double tolerance, const char* what) {
  reference = reference.contiguous().view({-1});
  const double largest = reference.abs().max().item<double>();
  for (int64_t i = 0; i < reference.numel(); ++i) {
    ASSERT_NEAR(ours[i], reference[i].item<double>(), tolerance * largest) << what << " entry " << i;
  }
}

TEST_P(EveryKernels, FirstOrderGradientsMatchAutograd) {
  for (Activation activation : {Activation::kRelu, Activation::kSigmoid, Activation::kTanh}) {
    ParameterLayout layout;
    const MlpLayout net = layout.AddMlp("net", {kIn, 32, 24, 2}, activation, {1.0});
    const int size = static_cast<int>(layout.size());
    const std::vector<float> values = Random(1, size), inputs = Random(2, kRows * kIn), d_outs = Random(3, kRows * 2);
    const FloatView block = Upload(values, 1, size), x = Upload(inputs, kRows, kIn), d_out = Upload(d_outs, kRows, 2);
    const FloatView gradient = kernels_->NewFloats(1, 1, size);
    const MlpTape tape = kernels_->NewTape(net, 1, kRows);
    kernels_->Forward(block, net, x, tape);
    kernels_->Adjoint(block, net, d_out, tape);
    kernels_->ParameterGradient(net, x, d_out, tape, gradient);

    const Perceptron oracle(net, values);
    const torch::Tensor leaf = Perceptron::Leaf(inputs.data(), {kRows, kIn});
    (oracle(leaf) * Perceptron::Leaf(d_outs.data(), {kRows, 2}).detach()).sum().backward();
    const std::vector<float> ours = Download(gradient);
    for (size_t i = 0; i < net.layers.size(); ++i) {
      ExpectNear(&ours[net.layers[i].weight], oracle.weights[i].grad(), 1e-5, "weight");
      ExpectNear(&ours[net.layers[i].bias], oracle.biases[i].grad(), 1e-5, "bias");
    }
  }
}

// The derivative of <v, dy/dx> for x: autograd applied twice, compared with the change of the kernels' gradient along
// v.
TEST_P(EveryKernels, SecondOrderGradientsMatchAutograd) {
  ParameterLayout layout;
  const MlpLayout net = layout.AddMlp("net", {kIn, 32, 24, 1}, Activation::kSigmoid, {1.0});
  const int size = static_cast<int>(layout.size());
  std::vector<float> values = Random(1, size);
  for (float& value : values) value *= 2;
  const std::vector<float> inputs = Random(2, kRows * kIn), direction = Random(3, kRows * kIn);
  const FloatView block = Upload(values, 1, size);

  const Perceptron oracle(net, values);
  const torch::Tensor x = Perceptron::Leaf(inputs.data(), {kRows, kIn});
  const torch::Tensor v = Perceptron::Leaf(direction.data(), {kRows, kIn}).detach();
  const torch::Tensor first = torch::autograd::grad({oracle(x).sum()}, {x}, {}, true, /*create_graph=*/true)[0];
  ExpectNear(InputGradient(net, block, inputs).data(), first.detach(), 1e-5, "input gradient");
  const torch::Tensor second = torch::autograd::grad({(first * v).sum()}, {x})[0];

  const float step = 1.0f / 64;
  std::vector<float> above = inputs, below = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) above[i] += step * direction[i], below[i] -= step * direction[i];
  std::vector<float> slope = InputGradient(net, block, above);
  const std::vector<float> lower = InputGradient(net, block, below);
  for (size_t i = 0; i < slope.size(); ++i) slope[i] = (slope[i] - lower[i]) / (2 * step);
  ExpectNear(slope.data(), second, 5e-3, "second order");
}

// The gradient of <a, y> + <v, dy/dx> for the parameters; autograd computes it by differentiating a gradient.
TEST_P(EveryKernels, SlopeGradientsMatchAutogradTwice) {
  for (const std::vector<int>& widths : {std::vector<int>{kIn, 32, 24, 1}, {kIn, 16, 1}, {kIn, 8, 8, 8, 1}}) {
    ParameterLayout layout;
    const MlpLayout net = layout.AddMlp("net", widths, Activation::kRelu, {1.4});
    const int size = static_cast<int>(layout.size());
    const std::vector<float> values = Random(1, size), inputs = Random(2, kRows * kIn);
    const std::vector<float> d_values = Random(3, kRows), d_slopes = Random(4, kRows * kIn);
    const FloatView block = Upload(values, 1, size), x = Upload(inputs, kRows, kIn);
    const FloatView gradient = kernels_->NewFloats(1, 1, size);
    const MlpTape tape = kernels_->NewTape(net, 1, kRows), tangent = kernels_->NewTape(net, 1, kRows);
    kernels_->Forward(block, net, x, tape);
    kernels_->Adjoint(block, net, Upload(std::vector<float>(kRows, 1.0f), kRows, 1), tape);
    kernels_->SlopeGradient(block, net, x, Upload(d_values, kRows, 1), Upload(d_slopes, kRows, kIn), tape, tangent,
                            gradient);

    const Perceptron oracle(net, values);
    const torch::Tensor leaf = Perceptron::Leaf(inputs.data(), {kRows, kIn}), y = oracle(leaf);
    const torch::Tensor slope = torch::autograd::grad({y.sum()}, {leaf}, {}, true, /*create_graph=*/true)[0];
    ((y * Perceptron::Leaf(d_values.data(), {kRows, 1}).detach()).sum() +
     (slope * Perceptron::Leaf(d_slopes.data(), {kRows, kIn}).detach()).sum())
        .backward();
    const std::vector<float> ours = Download(gradient);
    for (size_t i = 0; i < net.layers.size(); ++i) {
      ExpectNear(&ours[net.layers[i].weight], oracle.weights[i].grad(), 1e-5, "weight");
      ExpectNear(&ours[net.layers[i].bias], oracle.biases[i].grad(), 1e-5, "bias");
    }
  }
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
