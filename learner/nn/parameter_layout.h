// Multi-layer perceptrons inside one flat float32 block a member: where the weights lie, and the memory of one
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

struct Mlp {
  std::vector<MlpLayer> layers;
  Activation hidden = Activation::kRelu;
  // The last `repeated` input columns are the second layer's last inputs, too (TD3's critics read actions twice).
  int repeated = 0;
  int in() const { return layers.front().in; }
  int out() const { return layers.back().out; }
  // The same net in a block that starts `first` floats later (targets mirror a part of the online block).
  Mlp Shifted(int64_t first) const;
};

// Which of `count` input columns from first_col on are repeated: `count` of those columns from `first` on, which are
// the second layer's inputs from layer_first on.
struct RepeatedColumns {
  int first = 0, count = 0, layer_first = 0;
};
RepeatedColumns RepeatedOf(const Mlp& net, int first_col, int count);

// Activations of one net's latest evaluation, and the adjoints of its hidden pre-activations; rows are those of the
// input.
struct MlpTape {
  std::vector<FloatView> hidden;   // one a hidden layer: [members, rows, width], after the activation; inputs repeated
  std::vector<FloatView> adjoint;  // [members, rows, width]: d(objective)/d(pre-activation)
  FloatView out;                   // [members, rows, out], linear
  MlpTape Rows(int first, int count) const;
};

// One named array of a member's block, with its initialisation: uniform in centre +- bound.
struct ParameterArray {
  std::string name;
  int64_t offset = 0;
  std::vector<uint32_t> shape;
  double bound = 0, centre = 0;
  int64_t size() const;
};

// Initialisation of weights (learner/algorithms/README.md 1.3). Biases are U(+-1/sqrt(fan_in)).
struct WeightInit {
  double xavier_gain = 0;  // 0: U(+-1/sqrt(fan_in)); else U(+-gain*sqrt(6/(fan_in+fan_out)))
  double last_gain = 0;    // of the output layer; 0: as the others
  double last_bound = 0;   // the output layer's weights U(+-last_bound) instead, unless 0
  double last_bias = 0;    // the output layer's biases all this instead, unless 0
};

// in, hidden..., out: the widths of a perceptron.
std::vector<int> Widths(int in, const std::vector<int>& hidden, int out);

// Lays arrays into a block one after another, each at a multiple of 16 floats (a cache line).
class ParameterLayout {
 public:
  // widths: in, hidden..., out. Arrays "<name>.<i>.weight", "<name>.<i>.bias"; with repeated inputs, whose weights lie
  // behind those of the second layer's others, "<name>.1.input_weight" and at least two hidden layers
  // (std::invalid_argument naming the net).
  Mlp AddMlp(const std::string& name, const std::vector<int>& widths, Activation hidden, WeightInit init,
             int repeated = 0);
  int64_t AddScalar(const std::string& name);  // starts at 0
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
