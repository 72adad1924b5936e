// Multi-layer perceptrons inside one flat float32 block a member: where the weights lie, and the memory of one
// evaluation. Weights are [in, out] row-major: y = x W + b.
#ifndef DATACOM_LEARNER_NN_MLP_H_
#define DATACOM_LEARNER_NN_MLP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "learner/nn/view.h"

namespace datacom::learner {

enum class Activation { kRelu, kSigmoid };

struct MlpLayer {
  int in = 0, out = 0;
  int64_t weight = 0, bias = 0;  // offsets in the member's block
};

struct Mlp {
  std::vector<MlpLayer> layers;
  Activation hidden = Activation::kRelu;
  int in() const { return layers.front().in; }
  int out() const { return layers.back().out; }
  // The same net in a block that starts `first` floats later (targets mirror a part of the online block).
  Mlp Shifted(int64_t first) const;
};

// Activations of one net's latest evaluation, and the adjoints of its hidden pre-activations; rows are those of the
// input.
struct MlpTape {
  std::vector<FloatView> hidden;   // one a hidden layer: [members, rows, width], after the activation
  std::vector<FloatView> adjoint;  // as hidden: d(objective)/d(pre-activation)
  FloatView out;                   // [members, rows, out], linear
  MlpTape Rows(int first, int count) const;
};

// One named array of a member's block, with its initialisation: uniform in +-bound.
struct ParameterArray {
  std::string name;
  int64_t offset = 0;
  std::vector<uint32_t> shape;
  double bound = 0;
  int64_t size() const;
};

// Weight initialisation of algorithms.md 1.3; biases are always U(+-1/sqrt(fan_in)).
struct WeightInit {
  double xavier_gain = 0;  // 0: U(+-1/sqrt(fan_in)); else U(+-gain*sqrt(6/(fan_in+fan_out)))
  double last_gain = 0;    // of the output layer; 0: as the others
};

// in, hidden..., out: the widths of a perceptron.
std::vector<int> Widths(int in, const std::vector<int>& hidden, int out);

// Lays arrays into a block one after another, each at a multiple of 16 floats (a cache line).
class ParameterLayout {
 public:
  // widths: in, hidden..., out. Arrays "<name>.<i>.weight", "<name>.<i>.bias".
  Mlp AddMlp(const std::string& name, const std::vector<int>& widths, Activation hidden, WeightInit init);
  int64_t AddScalar(const std::string& name);  // starts at 0
  int64_t size() const { return size_; }
  const std::vector<ParameterArray>& arrays() const { return arrays_; }

 private:
  int64_t Add(const std::string& name, std::vector<uint32_t> shape, double bound);
  std::vector<ParameterArray> arrays_;
  int64_t size_ = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_MLP_H_
