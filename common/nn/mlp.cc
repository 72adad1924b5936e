#include "common/nn/mlp.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
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

float Softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

float SoftplusSlope(float x) { return x > 20.0f ? 1.0f : 1.0f / (1.0f + std::exp(-x)); }

std::string ShapeText(const std::vector<uint32_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

absl::Status CheckArray(const Snapshot& snapshot, const std::string& name, std::initializer_list<int> shape) {
  const NamedArray* array = snapshot.Find(name);
  if (array == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot for acting rule \"", snapshot.acting_rule, "\" has no array ", name));
  }
  const bool same = std::equal(shape.begin(), shape.end(), array->shape.begin(), array->shape.end(),
                               [](int want, uint32_t have) { return static_cast<uint32_t>(want) == have; });
  size_t count = 1;
  for (const int extent : shape) count *= static_cast<size_t>(extent);
  if (!same || array->values.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("array ", name, " has shape ", ShapeText(array->shape), " and ",
                                                   array->values.size(), " values, expected [",
                                                   absl::StrJoin(shape, ", "), "]"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Mlp> Mlp::Make(const Snapshot& snapshot, const MlpSpec& spec, int max_batch) {
  if (max_batch < 1) return absl::InvalidArgumentError(absl::StrCat("max_batch = ", max_batch, ", must be at least 1"));
  if (spec.gradient && spec.outputs != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("net ", spec.net, " has ", spec.outputs, " outputs; a gradient needs 1"));
  }
  if (spec.gradient && spec.hidden != Hidden::kRelu && spec.hidden != Hidden::kSigmoid) {
    return absl::InvalidArgumentError(absl::StrCat("net ", spec.net, " has hidden units without a gradient"));
  }
  Mlp mlp(spec);
  int width = spec.inputs, widest = Padded(spec.inputs);
  for (int i = 0;; ++i) {
    Layer layer;
    layer.weight_name = absl::StrCat(spec.net, ".", i, ".weight");
    layer.bias_name = absl::StrCat(spec.net, ".", i, ".bias");
    const NamedArray* weight = snapshot.Find(layer.weight_name);
    if (weight == nullptr && i > 0) break;
    layer.in = width;
    layer.out = weight != nullptr && weight->shape.size() == 2 ? static_cast<int>(weight->shape[1]) : spec.outputs;
    RETURN_IF_ERROR(CheckArray(snapshot, layer.weight_name, {layer.in, layer.out}));
    RETURN_IF_ERROR(CheckArray(snapshot, layer.bias_name, {layer.out}));
    layer.in_stride = Padded(layer.in);
    layer.out_stride = Padded(layer.out);
    layer.weight = Floats::Zero(layer.in * layer.out_stride);
    layer.bias = Floats::Zero(layer.out_stride);
    layer.activation = Floats::Zero(max_batch * layer.out_stride);
    if (spec.gradient) layer.transposed = Floats::Zero(layer.out * layer.in_stride);
    width = layer.out;
    widest = std::max(widest, layer.out_stride);
    mlp.layers_.push_back(std::move(layer));
  }
  if (width != spec.outputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("array ", mlp.layers_.back().weight_name, " has ", width, " columns, expected ", spec.outputs));
  }
  if (spec.gradient) {
    for (Floats& buffer : mlp.backward_) buffer = Floats::Zero(max_batch * widest);
  }
  RETURN_IF_ERROR(mlp.Load(snapshot));
  return mlp;
}

absl::Status Mlp::Check(const Snapshot& snapshot) const {
  for (const Layer& layer : layers_) {
    RETURN_IF_ERROR(CheckArray(snapshot, layer.weight_name, {layer.in, layer.out}));
    RETURN_IF_ERROR(CheckArray(snapshot, layer.bias_name, {layer.out}));
  }
  return absl::OkStatus();
}

absl::Status Mlp::Load(const Snapshot& snapshot) {
  RETURN_IF_ERROR(Check(snapshot));
  Set(snapshot);
  return absl::OkStatus();
}

void Mlp::Set(const Snapshot& snapshot) {
  for (Layer& layer : layers_) {
    const float* weight = snapshot.Find(layer.weight_name)->values.data();
    const float* bias = snapshot.Find(layer.bias_name)->values.data();
    for (int i = 0; i < layer.in; ++i) {
      std::copy_n(weight + i * layer.out, layer.out, layer.weight.data() + i * layer.out_stride);
      if (!spec_.gradient) continue;
      for (int j = 0; j < layer.out; ++j) layer.transposed[j * layer.in_stride + i] = weight[i * layer.out + j];
    }
    std::copy_n(bias, layer.out, layer.bias.data());
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
