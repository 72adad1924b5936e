// A multi-layer perceptron evaluated from snapshot arrays, float32, batched, with the input gradient of a scalar
// output.
//
// A row's result does not depend on its batch: every output value is one chain of fused multiply-adds over the inputs
// in order, whatever the batch size (multiply.h; lockstep runs and evaluators rely on it). Widths are padded to full
// vectors. Not thread-safe: owns its workspace, which the constructor allocates; other functions allocate nothing.
// Never blocks.
#ifndef DATACOM_COMMON_NN_MLP_H_
#define DATACOM_COMMON_NN_MLP_H_

#include <string>
#include <vector>

#include "Eigen/Core"
#include "common/nn/snapshot.h"

namespace datacom {

struct MlpSpec {
  enum class Hidden { kRelu, kSigmoid, kTanh, kSwish };  // swish: v sigmoid(v)
  enum class Output { kLinear, kSoftplus };
  std::string net;  // name prefix in the snapshot (snapshot.h)
  int inputs = 0;
  int outputs = 0;
  Hidden hidden = Hidden::kRelu;
  Output output = Output::kLinear;
  bool gradient = false;  // enables ForwardWithGradient; needs outputs == 1 and ReLU or sigmoid units
};

class Mlp {
 public:
  using Hidden = MlpSpec::Hidden;
  using Output = MlpSpec::Output;

  // Takes depth and hidden widths from the snapshot, which has the net (SnapshotCheck, common/acting/snapshot_form.h).
  Mlp(const Snapshot& snapshot, const MlpSpec& spec, int max_batch);
  void Set(const Snapshot& snapshot);  // the parameters of another snapshot with the same shapes

  // in: [batch, inputs]; out: [batch, outputs]. batch <= max_batch.
  void Forward(int batch, const float* in, float* out);
  // gradient: [batch, inputs], of the only output after its output function.
  void ForwardWithGradient(int batch, const float* in, float* out, float* gradient);

  int inputs() const { return spec_.inputs; }
  int outputs() const { return spec_.outputs; }

 private:
  using Floats = Eigen::Matrix<float, Eigen::Dynamic, 1>;  // aligned to full vectors
  struct Layer {
    std::string weight_name, bias_name;
    int in = 0, out = 0;
    int in_stride = 0, out_stride = 0;  // rounded up to full vectors
    Floats weight;                      // [in, out_stride], padding 0
    Floats transposed;                  // [out, in_stride], padding 0; empty without gradient
    Floats bias;                        // [out_stride]
    Floats activation;                  // [max_batch, out_stride]
  };

  void Propagate(int batch, const float* in);
  void Finish(int batch, float* out);

  MlpSpec spec_;
  std::vector<Layer> layers_;
  Floats backward_[2];  // [max_batch, widest stride] each
};

}  // namespace datacom

#endif  // DATACOM_COMMON_NN_MLP_H_
// SPDX-License-Identifier: Apache-2.0
