#include "learner/nn/mlp.h"

#include <cmath>
#include <utility>

namespace datacom::learner {

Mlp Mlp::Shifted(int64_t first) const {
  Mlp shifted = *this;
  for (MlpLayer& layer : shifted.layers) {
    layer.weight -= first;
    layer.bias -= first;
  }
  return shifted;
}

MlpTape MlpTape::Rows(int first, int count) const {
  MlpTape part;
  for (const FloatView& view : hidden) part.hidden.push_back(view.Rows(first, count));
  for (const FloatView& view : adjoint) part.adjoint.push_back(view.Rows(first, count));
  part.out = out.Rows(first, count);
  return part;
}

int64_t ParameterArray::size() const {
  int64_t product = 1;
  for (uint32_t n : shape) product *= n;
  return product;
}

std::vector<int> Widths(int in, const std::vector<int>& hidden, int out) {
  std::vector<int> widths{in};
  widths.insert(widths.end(), hidden.begin(), hidden.end());
  widths.push_back(out);
  return widths;
}

int64_t ParameterLayout::Add(const std::string& name, std::vector<uint32_t> shape, double bound) {
  ParameterArray array{name, size_, std::move(shape), bound};
  size_ += (array.size() + 15) / 16 * 16;
  arrays_.push_back(std::move(array));
  return arrays_.back().offset;
}

Mlp ParameterLayout::AddMlp(const std::string& name, const std::vector<int>& widths, Activation hidden,
                            WeightInit init) {
  Mlp net;
  net.hidden = hidden;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    MlpLayer layer;
    layer.in = widths[i];
    layer.out = widths[i + 1];
    const double fan_in_bound = 1 / std::sqrt(static_cast<double>(layer.in));
    const bool last = i + 2 == widths.size();
    const double gain = last && init.last_gain > 0 ? init.last_gain : init.xavier_gain;
    const double weight_bound = gain > 0 ? gain * std::sqrt(6.0 / (layer.in + layer.out)) : fan_in_bound;
    const std::string prefix = name + "." + std::to_string(i);
    layer.weight =
        Add(prefix + ".weight", {static_cast<uint32_t>(layer.in), static_cast<uint32_t>(layer.out)}, weight_bound);
    layer.bias = Add(prefix + ".bias", {static_cast<uint32_t>(layer.out)}, fan_in_bound);
    net.layers.push_back(layer);
  }
  return net;
}

int64_t ParameterLayout::AddScalar(const std::string& name) { return Add(name, {1}, 0); }

}  // namespace datacom::learner
