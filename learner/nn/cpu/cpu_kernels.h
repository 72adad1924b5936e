// Kernels on the CPU: products by gemm.h, and everything between two products in one pass over memory (loops.h, for the
// processor's instruction set). Works on one member at a time (BlockSize 1). So a member's activations, weights and
// moments stay in cache, and a member has the same numbers in every population. A call runs on the thread that
// makes it; Each offers its calls to a team.
#ifndef DATACOM_LEARNER_NN_CPU_CPU_KERNELS_H_
#define DATACOM_LEARNER_NN_CPU_CPU_KERNELS_H_

#include <memory>
#include <vector>

#include "learner/nn/cpu/loops.h"
#include "learner/nn/kernels.h"

namespace datacom::learner {

std::unique_ptr<Kernels> MakeCpuKernels(Team* team);  // team: null or outlives the kernels

class CpuKernels : public Kernels {
 public:
  explicit CpuKernels(Team* team);
  ~CpuKernels() override;
  CpuKernels(const CpuKernels&) = delete;
  CpuKernels& operator=(const CpuKernels&) = delete;

  int BlockSize(int members) const override { return 1; }
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
  template <class Body>
  void EachLines(int n, const Body& body);
  int RangeCount() const override { return team_ == nullptr ? 1 : 2; }
  void RunEach(int count, const Call& body) override;
  std::unique_ptr<KernelGroup> MakeImpl(std::type_index group) override;
  const float* Columns(const float* weight, const MlpLayer& layer);  // the weights transposed, [out, in]

  Team* const team_;
  const Loops& loops_;
  std::vector<void*> allocations_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_CPU_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
