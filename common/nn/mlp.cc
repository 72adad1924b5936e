#include "common/nn/mlp.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/nn/multiply.h"

namespace datacom {
namespace {

constexpr int kLanes = kVectorFloats;
using Vector = Eigen::Array<float, kLanes, 1>;

int Padded(int width) { return (width + kLanes - 1) / kLanes * kLanes; }

// Processes whole vectors only, so that a value's bits do not depend on its position.
template <typename Function>
void Elementwise(float* values, int count, Function function) {
  for (int i = 0; i < count; i += kLanes) {
    Eigen::Map<Vector> block(values + i);
    block = function(block);
  }
}

// to[j * stride + i] = from[i * out + j], in blocks of rows that stay in the first-level cache.
void Transpose(const float* from, int in, int out, int stride, float* to) {
  constexpr int kRows = 16;
  for (int first = 0; first < in; first += kRows) {
    const int end = std::min(first + kRows, in);
    for (int j = 0; j < out; ++j) {
      for (int i = first; i < end; ++i) to[j * stride + i] = from[i * out + j];
    }
  }
}

float Softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

float SoftplusSlope(float x) { return x > 20.0f ? 1.0f : 1.0f / (1.0f + std::exp(-x)); }

}  // namespace

Mlp::Mlp(const Snapshot& snapshot, const MlpSpec& spec, int max_batch) : spec_(spec) {
  int widest = Padded(spec.inputs);
  for (int i = 0;; ++i) {
    Layer layer;
    layer.weight_name = absl::StrCat(spec.net, ".", i, ".weight");
    layer.bias_name = absl::StrCat(spec.net, ".", i, ".bias");
    const NamedArray* const weight = snapshot.Find(layer.weight_name);
    if (weight == nullptr) break;
    layer.in = static_cast<int>(weight->shape[0]);
    layer.out = static_cast<int>(weight->shape[1]);
    layer.in_stride = Padded(layer.in);
    layer.out_stride = Padded(layer.out);
    layer.weight = Floats::Zero(layer.in * layer.out_stride);
    layer.bias = Floats::Zero(layer.out_stride);
    layer.activation = Floats::Zero(max_batch * layer.out_stride);
    if (spec.gradient) layer.transposed = Floats::Zero(layer.out * layer.in_stride);
    widest = std::max(widest, layer.out_stride);
    layers_.push_back(std::move(layer));
  }
  if (spec.gradient) {
    for (Floats& buffer : backward_) buffer = Floats::Zero(max_batch * widest);
  }
  Set(snapshot);
}

void Mlp::Set(const Snapshot& snapshot) {
  for (Layer& layer : layers_) {
    const float* weight = snapshot.Find(layer.weight_name)->values.data();
    const float* bias = snapshot.Find(layer.bias_name)->values.data();
    for (int i = 0; i < layer.in; ++i) {
      std::copy_n(weight + i * layer.out, layer.out, layer.weight.data() + i * layer.out_stride);
    }
    std::copy_n(bias, layer.out, layer.bias.data());
    if (spec_.gradient) Transpose(weight, layer.in, layer.out, layer.in_stride, layer.transposed.data());
  }
}

void Mlp::Propagate(int batch, const float* in) {
  const float* x = in;
  int x_stride = spec_.inputs;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    float* y = layer.activation.data();
    Multiply(batch, layer.in, x, x_stride, layer.weight.data(), layer.out_stride, layer.bias.data(), y);
    if (i + 1 < layers_.size()) {
      const int count = batch * layer.out_stride;
      if (spec_.hidden == Hidden::kRelu) {
        Elementwise(y, count, [](const auto& v) { return v.max(0.0f); });
      } else if (spec_.hidden == Hidden::kSwish) {
        Elementwise(y, count, [](const auto& v) { return v / (1.0f + (-v).exp()); });
      } else if (spec_.hidden == Hidden::kSigmoid) {
        Elementwise(y, count, [](const auto& v) { return (1.0f + (-v).exp()).inverse(); });
      } else {
        Elementwise(y, count, [](const auto& v) { return v.tanh(); });
      }
    }
    x = y;
    x_stride = layer.out_stride;
  }
}

void Mlp::Finish(int batch, float* out) {
  const Layer& last = layers_.back();
  for (int r = 0; r < batch; ++r) {
    for (int j = 0; j < spec_.outputs; ++j) {
      const float value = last.activation[r * last.out_stride + j];
      out[r * spec_.outputs + j] = spec_.output == Output::kSoftplus ? Softplus(value) : value;
    }
  }
}

void Mlp::Forward(int batch, const float* in, float* out) {
  Propagate(batch, in);
  Finish(batch, out);
}

void Mlp::ForwardWithGradient(int batch, const float* in, float* out, float* gradient) {
  Propagate(batch, in);
  Finish(batch, out);
  // d output / d (pre-activation of the last layer), then layer by layer towards the input.
  const Layer& last = layers_.back();
  float* g = backward_[0].data();
  float* spare = backward_[1].data();
  int g_stride = 1;
  for (int r = 0; r < batch; ++r) {
    g[r] = spec_.output == Output::kSoftplus ? SoftplusSlope(last.activation[r * last.out_stride]) : 1.0f;
  }
  for (size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    Multiply(batch, layer.out, g, g_stride, layer.transposed.data(), layer.in_stride, nullptr, spare);
    std::swap(g, spare);
    g_stride = layer.in_stride;
    if (i == 0) break;
    const float* h = layers_[i - 1].activation.data();
    for (int k = 0; k < batch * g_stride; k += kLanes) {
      Eigen::Map<Vector> block(g + k);
      const Eigen::Map<const Vector> value(h + k);
      if (spec_.hidden == Hidden::kRelu) {
        block = (value > 0.0f).select(block, 0.0f);
      } else {
        block *= value * (1.0f - value);
      }
    }
  }
  for (int r = 0; r < batch; ++r) std::copy_n(g + r * g_stride, spec_.inputs, gradient + r * spec_.inputs);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
