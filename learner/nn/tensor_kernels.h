// Kernels as plain LibTorch operations on stacked tensors, all members in one launch, on any device. On CUDA the update
// is recorded once as a graph and replayed. Same formulas as FusedKernels, whose check it is (tests/learner).
// tensor_kernels.cc holds memory, perceptrons and optimisers, tensor_rows.cc the per-row algebra, tensor_joined_map.cc
// the map of several constraints, tensor_watch.cc what is watched and undone.
#ifndef DATACOM_LEARNER_NN_TENSOR_KERNELS_H_
#define DATACOM_LEARNER_NN_TENSOR_KERNELS_H_

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "learner/nn/kernels.h"

namespace datacom::learner {

// The window as a tensor that shares its memory.
template <class T>
at::Tensor AsTensor(const View<T>& view, const at::Device& device) {
  const auto options =
      at::TensorOptions().dtype(std::is_same<T, float>::value ? at::kFloat : at::kDouble).device(device);
  return at::from_blob(view.data, {view.members, view.rows, view.cols}, {view.member_stride, view.row_stride, 1},
                       options);
}

class TensorKernels : public Kernels {
 public:
  explicit TensorKernels(const std::string& device);
  ~TensorKernels() override;

  int BlockSize(int members) const override { return members; }
  void* Allocate(size_t bytes) override;
  void Upload(const float* packed, const FloatView& to) override;
  void Upload(const double* packed, const DoubleView& to) override;
  void Download(const FloatView& from, float* packed) override;
  void Download(const DoubleView& from, double* packed) override;
  void Run(int plan, const std::function<void()>& compute) override;

  void Forward(const FloatView& block, const Mlp& net, const FloatView& x, const MlpTape& tape) override;
  void Adjoint(const FloatView& block, const Mlp& net, const FloatView& d_out, const MlpTape& tape) override;
  void ScaleAdjoint(const FloatView& d_out, const MlpTape& tape) override;
  void InputGradient(const FloatView& block, const Mlp& net, const MlpTape& tape, int first_col, bool add,
                     const FloatView& d_x) override;
  void ParameterGradient(const Mlp& net, const FloatView& x, const FloatView& d_out, const MlpTape& tape,
                         const FloatView& gradient_block) override;
  void SlopeGradient(const FloatView& block, const Mlp& net, const FloatView& x, const FloatView& d_value,
                     const FloatView& d_slope, const MlpTape& tape, const MlpTape& tangent,
                     const FloatView& gradient_block) override;

  void SampleAction(const FloatView& mean, const FloatView& log_std, const FloatView& noise, const ActionBox& box,
                    const ActionSample& out) override;
  void SampleActionGradient(const FloatView& log_std, const FloatView& noise, const ActionBox& box,
                            const ActionSample& sample, const FloatView& d_u, const FloatView& log_alpha,
                            const FloatView& d_mean, const FloatView& d_log_std) override;
  void DeterministicAction(const FloatView& raw, const ActionBox& box, const FloatView& action) override;
  void ActionInHalfRanges(const FloatView& action, const ActionBox& box, const FloatView& scaled) override;
  void DeterministicActionGradient(const FloatView& action, const ActionBox& box, const FloatView& d_scaled,
                                   const FloatView& d_raw) override;
  void SmoothAction(const FloatView& noise, const DoubleView& std, const DoubleView& bound, const ActionBox& box,
                    const FloatView& action) override;
  void LinearCostLoss(const FloatView& slope, const FloatView& action, const FloatView& previous, const FloatView& cost,
                      const FloatView& prediction, const FloatView& d_slope, const DoubleView& loss) override;
  void BarrierLoss(const BarrierInput& in, const FloatView& d_value, const FloatView& d_slope,
                   const DoubleView& loss) override;
  void GaussianRisk(const FloatView& mean, const FloatView& log_std, const FloatView& mean_gradient,
                    const FloatView& log_std_gradient, const DoubleView& margin, const DoubleView& delta,
                    const DoubleView& k, const DoubleView& J) override;
  void SafeMap(const SafeMapInput& in, const FloatView& u, const SafeMapOutput& out) override;
  void SafeMapGradient(const DoubleView& record, const FloatView& u, const FloatView& d_action,
                       const FloatView& d_u) override;
  void JoinMap(const JoinedMapInput& in, const DoubleView& map) override;
  void JoinedMap(const DoubleView& map, const DoubleView& target_entropy, const FloatView& u,
                 const SafeMapOutput& out) override;
  void JoinedMapGradient(const DoubleView& map, const DoubleView& record, const FloatView& u, const FloatView& d_action,
                         const FloatView& d_u) override;
  void GaussianLoss(const FloatView& mean, const FloatView& spread, const GaussianTarget& target,
                    const FloatView& d_mean, const FloatView& d_spread, const DoubleView& loss) override;
  void LevelFeatures(const FloatView& level, const FloatView& features) override;
  void QuantileProduct(const FloatView& base, const FloatView& embedding, const FloatView& product) override;
  void QuantileProductGradient(const FloatView& base, const FloatView& embedding, const FloatView& d_product,
                               const FloatView& d_base) override;
  void QuantileRisk(const FloatView& value, const FloatView& gradient, const DoubleView& delta, const DoubleView& k,
                    const DoubleView& J) override;
  void QuantileTarget(const FloatView& cost, const FloatView& absorbing, const FloatView& next, double discount,
                      const FloatView& y) override;
  void QuantileLoss(const FloatView& value, const FloatView& y, const FloatView& level,
                    const DoubleView& failure_weight, int main_rows, const FloatView& d_value,
                    const DoubleView& loss) override;
  void CostTarget(const FloatView& cost, const FloatView& absorbing, const FloatView& next, double discount,
                  const FloatView& y) override;
  void CostRisk(const FloatView& mean, const FloatView& spread, const DoubleView& margin,
                const FloatView& cvar) override;
  void CostRiskGradient(const FloatView& d_cvar, const FloatView& spread, const DoubleView& margin,
                        const FloatView& d_spread) override;
  void Multiplier(const FloatView& raw, const DoubleView& mean_cost, const DoubleView& limit, const DoubleView& damping,
                  const DoubleView& price, const FloatView& gradient) override;
  void WeightedMean(const FloatView& x, const DoubleView& weight, const FloatView& d_x,
                    const DoubleView& loss) override;
  void ActorLoss(const FloatView& q0, const FloatView& q1, const FloatView& log_pi, const FloatView& log_alpha,
                 const FloatView& d_q0, const FloatView& d_q1, const DoubleView& loss,
                 const DoubleView& mean_log_pi) override;
  void TemperatureGradient(const DoubleView& mean_log_pi, const DoubleView& target_entropy, const FloatView& log_alpha,
                           const FloatView& gradient) override;
  void SoftTarget(const FloatView& reward, const FloatView& absorbing, const FloatView& q0, const FloatView& q1,
                  const FloatView& log_pi, const FloatView& log_alpha, double discount, const FloatView& y) override;
  void MinTarget(const FloatView& reward, const FloatView& absorbing, const FloatView& q0, const FloatView& q1,
                 double discount, const FloatView& y) override;
  void Floor(const DoubleView& least, const FloatView& y) override;
  void SquaredLoss(const FloatView& q, const FloatView& y, double weight, const FloatView& d_q,
                   const DoubleView& loss) override;

  void SetZero(const DoubleView& value) override;
  void RowMean(const DoubleView& rows, const DoubleView& mean) override;
  void RowMean(const FloatView& rows, const DoubleView& mean) override;
  void Guard(const DoubleView& value, const DoubleView& active) override;
  void Accumulate(const DoubleView& value, double sign, const DoubleView& active, const DoubleView& sum) override;
  void Adam(const AdamRange& range) override;
  void Polyak(const FloatView& source, double tau, const DoubleView& active, const FloatView& target) override;

  void GradientNorm(const FloatView& gradient, const DoubleView& norm, const DoubleView& active) override;
  void CriticValues(const FloatView& q0, const FloatView& q1, const DoubleView& mean, const DoubleView& least,
                    const DoubleView& gap) override;
  void AccumulateLeast(const DoubleView& value, const DoubleView& active, const DoubleView& least) override;
  void Copy(const DoubleView& from, const DoubleView& to) override;
  void Calm(const FloatView& x, double limit, const DoubleView& calm) override;
  void Calm(const DoubleView& x, double limit, const DoubleView& calm) override;
  void CopyUnlessCalm(const FloatView& from, const DoubleView& calm, const FloatView& to) override;
  void CopyUnlessCalm(const DoubleView& from, const DoubleView& calm, const DoubleView& to) override;
  void PutBack(const FloatView& from, const DoubleView& active, const DoubleView& calm, const FloatView& to) override;
  void PutBack(const DoubleView& from, const DoubleView& active, const DoubleView& calm, const DoubleView& to) override;

 private:
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

#endif  // DATACOM_LEARNER_NN_TENSOR_KERNELS_H_
