#include "learner/nn/parameter_layout.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace datacom::learner {

RepeatedColumns RepeatedOf(const MlpLayout& net, int first_col, int count) {
  RepeatedColumns columns;
  const int start = net.in() - net.repeated, first = std::max(first_col, start);
  columns.count = std::max(first_col + count - first, 0);
  if (columns.count == 0) return columns;
  columns.first = first - first_col;
  columns.layer_first = net.layers.front().out + first - start;
  return columns;
}

MlpTape MlpTape::Rows(int first, int count) const {
  MlpTape part;
  for (const FloatView& view : hidden) part.hidden.push_back(view.Rows(first, count));
  for (const FloatView& view : adjoint) part.adjoint.push_back(view.Rows(first, count));
  for (const FloatView& view : inverse_deviation) part.inverse_deviation.push_back(view.Rows(first, count));
  part.out = out.Rows(first, count);
  return part;
}

int64_t ParameterArray::size() const {
  int64_t product = 1;
  for (uint32_t n : shape) product *= n;
  return product;
}

void ParameterLayout::Pad() { size_ = (size_ + 15) / 16 * 16; }

int64_t ParameterLayout::Add(const std::string& name, std::vector<uint32_t> shape, double bound, double centre) {
  ParameterArray array{name, size_, std::move(shape), bound, centre};
  size_ += array.size();
  arrays_.push_back(std::move(array));
  return arrays_.back().offset;
}

MlpLayout ParameterLayout::AddMlp(const std::string& name, const std::vector<int>& widths, Activation hidden,
                                  WeightInit init, int repeated) {
  const auto fan_in_bound = [](int in) { return 1 / std::sqrt(static_cast<double>(in)); };
  MlpLayout net;
  net.hidden = hidden;
  net.repeated = repeated;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const int in = widths[i], out = widths[i + 1];
    const uint32_t columns = static_cast<uint32_t>(out);
    const bool last = i + 2 == widths.size();
    const double gain = last && init.last_gain > 0 ? init.last_gain : init.xavier_gain;
    double bound = gain > 0 ? gain * std::sqrt(6.0 / (in + out)) : fan_in_bound(in);
    if (last && init.last_bound > 0) bound = init.last_bound;
    const std::string prefix = name + "." + std::to_string(i);
    MlpLayer layer{in, out};
    layer.weight = Add(prefix + ".weight", {static_cast<uint32_t>(in), columns}, bound);
    if (init.truncated_normal) arrays_.back().deviation = fan_in_bound(in) / 2;
    if (i == 1 && repeated > 0) {
      Add(prefix + ".input_weight", {static_cast<uint32_t>(repeated), columns}, fan_in_bound(repeated));
      layer.in += repeated;
    }
    Pad();
    const bool constant = last && init.last_bias != 0;
    const double bias_bound = constant || init.truncated_normal ? 0 : fan_in_bound(in);
    layer.bias = Add(prefix + ".bias", {columns}, bias_bound, constant ? init.last_bias : 0);
    Pad();
    net.layers.push_back(layer);
  }
  return net;
}

int64_t ParameterLayout::AddVector(const std::string& name, int size, double start) {
  const int64_t offset = Add(name, {static_cast<uint32_t>(size)}, 0, start);
  Pad();
  return offset;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
