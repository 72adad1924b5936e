// Multi-layer perceptrons inside one flat float32 block per member: the offsets of the weights, and the memory of one
// evaluation. Weights are [in, out] row-major: y = x W + b.
#ifndef DATACOM_LEARNER_NN_PARAMETER_LAYOUT_H_
#define DATACOM_LEARNER_NN_PARAMETER_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "learner/nn/activation.h"
#include "learner/nn/view.h"

namespace datacom::learner {

struct MlpLayer {
  int in = 0, out = 0;
  int64_t weight = 0, bias = 0;  // offsets in the member's block
};

struct MlpLayout {
  std::vector<MlpLayer> layers;
  Activation hidden = Activation::kRelu;
  // The last `repeated` input columns are also the last inputs of the second layer (TD3's critics read actions twice).
  int repeated = 0;
  // Hidden units are relu(LN(x W + b)); LN gives the units of a layer mean 0 and variance 1 in each row, without
  // parameters (docs/algorithms.md 1.3). Only for ReLU units without repeated inputs.
  bool layer_norm = false;
  int in() const { return layers.front().in; }
  int out() const { return layers.back().out; }
};

// The repeated ones among `count` input columns from first_col on: `count` of those columns, from `first` on. They are
// the second layer's inputs from layer_first on.
struct RepeatedColumns {
  int first = 0, count = 0, layer_first = 0;
};
RepeatedColumns RepeatedOf(const MlpLayout& net, int first_col, int count);

// Activations of a net's last evaluation, and the adjoints of its hidden pre-activations. They have the input's rows.
struct MlpTape {
  std::vector<FloatView> hidden;  // per hidden layer [members, rows, width], after the activation, with repeated inputs
  std::vector<FloatView> adjoint;            // [members, rows, width]: d(objective)/d(pre-activation)
  std::vector<FloatView> inverse_deviation;  // with layer_norm [members, rows, 1]: 1 / sqrt(variance + 1e-5)
  FloatView out;                             // [members, rows, out], linear
  MlpTape Rows(int first, int count) const;
};

// A named array of a member's block, and its initialisation: uniform in centre +- bound, or normal with this deviation,
// truncated at twice the deviation.
struct ParameterArray {
  std::string name;
  int64_t offset = 0;
  std::vector<uint32_t> shape;
  double bound = 0, centre = 0, deviation = 0;
  int64_t size() const;
};

// Initialisation of weights (docs/algorithms.md 1.3). Biases are U(+-1/sqrt(fan_in)).
struct WeightInit {
  double xavier_gain = 0;         // 0: U(+-1/sqrt(fan_in)); else U(+-gain*sqrt(6/(fan_in+fan_out)))
  double last_gain = 0;           // of the output layer; 0: like the others
  double last_bound = 0;          // unless 0, the output layer's weights are U(+-last_bound)
  double last_bias = 0;           // unless 0, the output layer's biases have this value
  bool truncated_normal = false;  // weights with deviation 1 / (2 sqrt(fan_in)), biases 0; excludes all others
};

// The widths of a perceptron: in, hidden..., out.
template <typename Sizes>
std::vector<int> Widths(int in, const Sizes& hidden, int out) {
  std::vector<int> widths{in};
  widths.insert(widths.end(), hidden.begin(), hidden.end());
  widths.push_back(out);
  return widths;
}

// Places arrays in a block one after another, each at a multiple of 16 floats (a cache line).
class ParameterLayout {
 public:
  // widths: in, hidden..., out. Arrays "<name>.<i>.weight", "<name>.<i>.bias"; with repeated inputs also
  // "<name>.1.input_weight", right behind the other weights of the second layer. Repeated inputs need two hidden
  // layers.
  MlpLayout AddMlp(const std::string& name, const std::vector<int>& widths, Activation hidden, WeightInit init,
                   int repeated = 0);
  int64_t AddScalar(const std::string& name) { return AddVector(name, 1, 0); }  // starts at 0
  int64_t AddVector(const std::string& name, int size, double start);           // every entry starts at `start`
  int64_t size() const { return size_; }
  const std::vector<ParameterArray>& arrays() const { return arrays_; }

 private:
  int64_t Add(const std::string& name, std::vector<uint32_t> shape, double bound, double centre = 0);
  void Pad();  // to the next cache line
  std::vector<ParameterArray> arrays_;
  int64_t size_ = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_PARAMETER_LAYOUT_H_
// SPDX-License-Identifier: Apache-2.0
