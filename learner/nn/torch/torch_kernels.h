// Kernels as plain LibTorch operations on stacked tensors, all members in one launch, on any device. On CUDA an update
// is recorded once as a graph and then replayed. The formulas are the same as in cpu/; tests compare the two
// (tests/learner).
#ifndef DATACOM_LEARNER_NN_TORCH_TORCH_KERNELS_H_
#define DATACOM_LEARNER_NN_TORCH_TORCH_KERNELS_H_

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "learner/nn/kernels.h"
#include "learner/nn/torch/torch_impl.h"

namespace datacom::learner {

inline constexpr char kRunRange[] = "datacom.run";  // the range that a profiler sees around Run

class TorchKernels : public Kernels {
 public:
  explicit TorchKernels(const std::string& device);
  ~TorchKernels() override;

  int BlockSize(int members) const override { return members; }
  void* Allocate(size_t bytes) override;
  void Upload(const float* packed, const FloatView& to) override;
  void Upload(const double* packed, const DoubleView& to) override;
  void Download(const FloatView& from, float* packed) override;
  void Download(const DoubleView& from, double* packed) override;
  void Run(int plan, const std::function<void()>& compute) override;

  void Forward(const FloatView& block, const MlpLayout& net, const FloatView& x, const MlpTape& tape) override;
  void Adjoint(const FloatView& block, const MlpLayout& net, const FloatView& d_out, const MlpTape& tape) override;
  void ScaleAdjoint(const FloatView& d_out, const MlpTape& tape) override;
  void InputGradient(const FloatView& block, const MlpLayout& net, const MlpTape& tape, int first_col, bool add,
                     const FloatView& d_x) override;
  void ParameterGradient(const MlpLayout& net, const FloatView& x, const FloatView& d_out, const MlpTape& tape,
                         const FloatView& gradient_block) override;
  void SlopeGradient(const FloatView& block, const MlpLayout& net, const FloatView& x, const FloatView& d_value,
                     const FloatView& d_slope, const MlpTape& tape, const MlpTape& tangent,
                     const FloatView& gradient_block) override;
  void Tangent(const FloatView& block, const FloatView& direction, const MlpLayout& net, const FloatView& x,
               const MlpTape& tape, const MlpTape& tangent) override;

  void Adam(const AdamRange& range) override;
  void Polyak(const FloatView& source, double tau, const DoubleView& active, const FloatView& target) override;
  void GradientNorm(const FloatView& gradient, const DoubleView& norm, const DoubleView& active) override;
  void DeactivateUnlessFinite(const DoubleView& value, const DoubleView& active) override;
  void SetZero(const DoubleView& value) override;
  void RowMean(const DoubleView& rows, const DoubleView& mean) override;
  void RowMean(const FloatView& rows, const DoubleView& mean) override;
  void Accumulate(const DoubleView& value, double sign, const DoubleView& active, const DoubleView& sum) override;
  void AccumulateLeast(const DoubleView& value, const DoubleView& active, const DoubleView& least) override;

  void Copy(const FloatView& from, const FloatView& to) override;
  void Copy(const DoubleView& from, const DoubleView& to) override;
  void Restore(const FloatView& from, const DoubleView& active, const FloatView& to) override;
  void Restore(const DoubleView& from, const DoubleView& active, const DoubleView& to) override;

 private:
  std::unique_ptr<KernelGroup> MakeImpl(std::type_index group) override;
  template <class T>
  at::Tensor Of(const View<T>& view) const {
    return AsTensor(view, device_);
  }
  // A net's parameters out of every member's block: [members, in, out] or [members, 1, out].
  at::Tensor Weight(const FloatView& block, const MlpLayer& layer) const;
  at::Tensor Bias(const FloatView& block, const MlpLayer& layer) const;

  at::Device device_;
  std::vector<at::Tensor> allocations_;
  struct Graph;
  std::map<int, std::unique_ptr<Graph>> graphs_;  // by plan; none on the CPU
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_TORCH_TORCH_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
