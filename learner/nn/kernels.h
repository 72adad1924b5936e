// Everything an update does to arrays, at the granularity that makes it fast: whole perceptron passes, per-row algebra
// of a batch, and optimiser steps over flat ranges. Algorithms are written once against this interface; FusedKernels
// runs it on the CPU with BLAS and vectorised loops, TensorKernels with plain LibTorch operations on any device.
//
// Not thread-safe. A Kernels owns all memory handed out; it lives as long as the Kernels. No call but Allocate*
// allocates on the fused path. Calls take their members from the views; members never mix.
#ifndef DATACOM_LEARNER_NN_KERNELS_H_
#define DATACOM_LEARNER_NN_KERNELS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "learner/nn/mlp.h"
#include "learner/nn/view.h"

namespace datacom::learner {

// Squashed Gaussian action: u = tanh(mean + std*noise)*half + centre, with log pi (learner/algorithms/README.md 1.5).
struct ActionBox {
  FloatView half, centre;  // [1, 1, action]
};
struct ActionSample {
  FloatView u;       // [members, rows, action]
  FloatView tanh;    // [members, rows, action]
  FloatView log_pi;  // [members, rows, 1]
};

// Constants of the map W(s, u) with one constraint row (common/safety/README.md 2.4).
struct SafeMapInput {
  DoubleView k;                                 // [members, rows, 1]
  DoubleView J;                                 // [members, rows, q + x]
  DoubleView f;                                 // [members, rows, q]
  DoubleView G;                                 // [members, rows, q * action]
  DoubleView x_dot;                             // [members, rows, x]
  DoubleView gain, slack_beta, target_entropy;  // [members, 1, 1]
};
struct SafeMapOutput {
  FloatView action;   // [members, rows, action]
  FloatView log_pi;   // [members, rows, 1]: the clamped log-determinant is subtracted in place
  DoubleView record;  // [members, rows, 2 action + 2]: what the backward pass needs (safe_map_row.h)
};

// The map with K known rows joined to the learned one (common/safety/safe_map.h); what of it depends on the state
// alone: B_top [action, action], offset [action], log-determinant.
struct JoinedMapInput {
  SafeMapInput learned;  // target_entropy is not read
  DoubleView known;      // [members, rows, K * (action + 2)]: records
};
inline int JoinedMapSize(int action) { return action * action + action + 1; }

// How two linear outputs m, s read as a Gaussian over discounted cost, and what its fit's target does at the ends of
// episodes and of its range.
enum class GaussianHead {
  // learner/algorithms/README.md 3: mean softplus(m), log standard deviation s; the target's variance reads absorbing.
  kFeasibility,
  // learner/algorithms/README.md 11: mean m, standard deviation softplus(s); the target's variance ignores it.
  kCost,
};

// One batch of such a fit, main rows first, then failure rows.
struct GaussianTarget {
  GaussianHead head;
  FloatView next_mean, next_spread;  // [members, rows, 1] target net's linear outputs at the next state
  FloatView cost, absorbing;         // [members, rows, 1]; negative costs count as 0
  DoubleView failure_weight;         // [members, 1, 1]: rows from main_rows on count if 1
  int main_rows = 0;
  double discount = 0;
};

// What the loss of a barrier V(q) reads (learner/algorithms/README.md 13.2). [members, rows, ...].
struct BarrierInput {
  enum { kMargin, kSafeWeight, kUnsafeWeight, kRelaxationWeight, kPenalty, kDecay, kNumbers };
  FloatView value, slope;  // V and dV/dq
  DoubleView f, G;         // [.., q], [.., q * action]
  FloatView action, cost;  // as chosen and stored; raw, the label
  ActionBox box;
  DoubleView numbers;  // [members, 1, kNumbers]
};

// One optimiser over a range of every member's block. steps and active are [members, 1, 1].
struct AdamRange {
  FloatView parameters, gradients, first_moment, second_moment;  // [members, 1, range]
  DoubleView learning_rate, steps, active;
};

class Kernels {
 public:
  virtual ~Kernels() = default;

  // How many of `members` one pass works on: 1 where cache locality decides (fused), all where launches do (tensor).
  virtual int BlockSize(int members) const = 0;
  virtual void* Allocate(size_t bytes) = 0;                           // zeroed, cache-line aligned
  virtual void Upload(const float* packed, const FloatView& to) = 0;  // host [members, rows, cols] -> view
  virtual void Upload(const double* packed, const DoubleView& to) = 0;
  virtual void Download(const FloatView& from, float* packed) = 0;  // waits for the device
  virtual void Download(const DoubleView& from, double* packed) = 0;
  // Runs compute, which issues only the calls below, always the same ones for the same `plan`: a device may record and
  // replay them.
  virtual void Run(int plan, const std::function<void()>& compute) = 0;

  FloatView NewFloats(int members, int rows, int cols);
  DoubleView NewDoubles(int members, int rows, int cols);
  MlpTape NewTape(const Mlp& net, int members, int rows);

  // ---- perceptrons. `block`: [members, 1, size] parameters or gradients of every member. x: [members, rows, in].
  virtual void Forward(const FloatView& block, const Mlp& net, const FloatView& x, const MlpTape& tape) = 0;
  // Adjoints of the hidden pre-activations for objective gradient d_out [members, rows, out].
  virtual void Adjoint(const FloatView& block, const Mlp& net, const FloatView& d_out, const MlpTape& tape) = 0;
  // Multiplies the rows of adjoints by d_out [members, rows, 1]: from those of a unit output to those of an objective.
  virtual void ScaleAdjoint(const FloatView& d_out, const MlpTape& tape) = 0;
  // d_x [members, rows, n]: gradient for the n input columns from first_col on; added to d_x where `add`.
  virtual void InputGradient(const FloatView& block, const Mlp& net, const MlpTape& tape, int first_col, bool add,
                             const FloatView& d_x) = 0;
  virtual void ParameterGradient(const Mlp& net, const FloatView& x, const FloatView& d_out, const MlpTape& tape,
                                 const FloatView& gradient_block) = 0;

  // Of a net with one output y and ReLU hidden units: the parameters' gradient of <d_value, y> + <d_slope, dy/dx>,
  // given the adjoints of a unit output. tangent: as tape; it and d_slope [members, rows, in] are overwritten.
  virtual void SlopeGradient(const FloatView& block, const Mlp& net, const FloatView& x, const FloatView& d_value,
                             const FloatView& d_slope, const MlpTape& tape, const MlpTape& tangent,
                             const FloatView& gradient_block) = 0;

  // ---- policy. mean, log_std: [members, rows, action] linear outputs; log_std is clamped to [-20, 2].
  virtual void SampleAction(const FloatView& mean, const FloatView& log_std, const FloatView& noise,
                            const ActionBox& box, const ActionSample& out) = 0;
  // Gradients of mean(alpha * log pi) + <d_u, u>.
  virtual void SampleActionGradient(const FloatView& log_std, const FloatView& noise, const ActionBox& box,
                                    const ActionSample& sample, const FloatView& d_u, const FloatView& log_alpha,
                                    const FloatView& d_mean, const FloatView& d_log_std) = 0;

  // ---- deterministic policy with a safety layer (learner/algorithms/README.md 12). Actions: [members, rows, action].
  // action = tanh(raw) half + centre.
  virtual void DeterministicAction(const FloatView& raw, const ActionBox& box, const FloatView& action) = 0;
  // scaled = action / half: what such a policy's critics read.
  virtual void ActionInHalfRanges(const FloatView& action, const ActionBox& box, const FloatView& scaled) = 0;
  // From the gradient for the scaled action, the one for raw.
  virtual void DeterministicActionGradient(const FloatView& action, const ActionBox& box, const FloatView& d_scaled,
                                           const FloatView& d_raw) = 0;
  // In place: action + std noise, the noise clipped to +-bound, the sum to the box. std, bound: [members, 1, 1].
  virtual void SmoothAction(const FloatView& noise, const DoubleView& std, const DoubleView& bound,
                            const ActionBox& box, const FloatView& action) = 0;
  // prediction = previous + <slope, action> of a step's cost [members, rows, 1]: its mean squared error and the
  // gradient for slope.
  virtual void LinearCostLoss(const FloatView& slope, const FloatView& action, const FloatView& previous,
                              const FloatView& cost, const FloatView& prediction, const FloatView& d_slope,
                              const DoubleView& loss) = 0;

  // ---- control barrier function (learner/algorithms/README.md 13.2). Loss and gradients for V [members, rows, 1] and
  // dV/dq. A label that no row has adds nothing.
  virtual void BarrierLoss(const BarrierInput& in, const FloatView& d_value, const FloatView& d_slope,
                           const DoubleView& loss) = 0;

  // ---- constraint (learner/algorithms/README.md 4, common/safety/README.md 2.4). Gradients are those of the linear
  // outputs for z. margin, delta: [members, 1, 1].
  virtual void GaussianRisk(const FloatView& mean, const FloatView& log_std, const FloatView& mean_gradient,
                            const FloatView& log_std_gradient, const DoubleView& margin, const DoubleView& delta,
                            const DoubleView& k, const DoubleView& J) = 0;
  virtual void SafeMap(const SafeMapInput& in, const FloatView& u, const SafeMapOutput& out) = 0;
  virtual void SafeMapGradient(const DoubleView& record, const FloatView& u, const FloatView& d_action,
                               const FloatView& d_u) = 0;
  // As SafeMap, in two steps: the state's part, map [members, rows, JoinedMapSize]; then the action and its
  // correction, with record [members, rows, 1] the scale. The fused path makes its workspace in the first call.
  virtual void JoinMap(const JoinedMapInput& in, const DoubleView& map) = 0;
  virtual void JoinedMap(const DoubleView& map, const DoubleView& target_entropy, const FloatView& u,
                         const SafeMapOutput& out) = 0;
  virtual void JoinedMapGradient(const DoubleView& map, const DoubleView& record, const FloatView& u,
                                 const FloatView& d_action, const FloatView& d_u) = 0;
  // Squared 2-Wasserstein loss [members, 1, 1] and gradients for the online net's linear outputs [members, rows, 1].
  virtual void GaussianLoss(const FloatView& mean, const FloatView& spread, const GaussianTarget& target,
                            const FloatView& d_mean, const FloatView& d_spread, const DoubleView& loss) = 0;

  // ---- implicit quantile network (learner/algorithms/README.md 7). Each row has N levels; quantile j of row r is
  // in row r * N + j. cos(pi i level), i = 0..: level [members, rows, N] -> features [members, rows * N, embedding].
  virtual void LevelFeatures(const FloatView& level, const FloatView& features) = 0;
  // product = relu(base) * sigmoid(embedding), row by row of base [members, rows, width]; embedding [members, rows * N,
  // width], or one row for all, becomes its sigmoid.
  virtual void QuantileProduct(const FloatView& base, const FloatView& embedding, const FloatView& product) = 0;
  // After it: from the gradient for the product, those for base and, in place of the product's, for embedding.
  virtual void QuantileProductGradient(const FloatView& base, const FloatView& embedding, const FloatView& d_product,
                                       const FloatView& d_base) = 0;
  // Constraint softplus(value) - delta and Jacobian, of linear outputs and their gradients for z.
  virtual void QuantileRisk(const FloatView& value, const FloatView& gradient, const DoubleView& delta,
                            const DoubleView& k, const DoubleView& J) = 0;
  // y = max(cost, 0) + discount (1 - absorbing) softplus(next): cost [members, rows, 1], next, y [members, rows * N,
  // 1].
  virtual void QuantileTarget(const FloatView& cost, const FloatView& absorbing, const FloatView& next, double discount,
                              const FloatView& y) = 0;
  // Quantile Huber loss of softplus(value) at level [members, rows, N] against every y of its row, and the gradient for
  // value; failure rows, from main_rows on, count where failure_weight [members, 1, 1] is 1.
  virtual void QuantileLoss(const FloatView& value, const FloatView& y, const FloatView& level,
                            const DoubleView& failure_weight, int main_rows, const FloatView& d_value,
                            const DoubleView& loss) = 0;

  // ---- cost under a Lagrange multiplier (learner/algorithms/README.md 10 and 11). Costs: [members, rows, 1].
  // y = max(cost, 0) + discount (1 - absorbing) next.
  virtual void CostTarget(const FloatView& cost, const FloatView& absorbing, const FloatView& next, double discount,
                          const FloatView& y) = 0;
  // CVaR of GaussianHead::kCost; and from the gradient for it, which is that for the mean, that for the spread.
  virtual void CostRisk(const FloatView& mean, const FloatView& spread, const DoubleView& margin,
                        const FloatView& cvar) = 0;
  virtual void CostRiskGradient(const FloatView& d_cvar, const FloatView& spread, const DoubleView& margin,
                                const FloatView& d_spread) = 0;
  // Multiplier softplus(raw) of the constraint mean_cost <= limit: gradient of softplus(raw) * (limit - mean_cost) for
  // raw, and what a unit of cost costs the actor, price = softplus(raw) - damping * (limit - mean_cost).
  virtual void Multiplier(const FloatView& raw, const DoubleView& mean_cost, const DoubleView& limit,
                          const DoubleView& damping, const DoubleView& price, const FloatView& gradient) = 0;
  // loss += weight * mean(x), and its gradient for x [members, rows, 1].
  virtual void WeightedMean(const FloatView& x, const DoubleView& weight, const FloatView& d_x,
                            const DoubleView& loss) = 0;

  // ---- critics. q: [members, rows, 1]; log_alpha: [members, 1, 1].
  // loss = mean(alpha log pi - min(q0, q1)), and its gradients for q0, q1; mean_log_pi beside.
  virtual void ActorLoss(const FloatView& q0, const FloatView& q1, const FloatView& log_pi, const FloatView& log_alpha,
                         const FloatView& d_q0, const FloatView& d_q1, const DoubleView& loss,
                         const DoubleView& mean_log_pi) = 0;
  virtual void TemperatureGradient(const DoubleView& mean_log_pi, const DoubleView& target_entropy,
                                   const FloatView& log_alpha, const FloatView& gradient) = 0;
  virtual void SoftTarget(const FloatView& reward, const FloatView& absorbing, const FloatView& q0, const FloatView& q1,
                          const FloatView& log_pi, const FloatView& log_alpha, double discount, const FloatView& y) = 0;
  // y = reward + discount (1 - absorbing) min(q0, q1).
  virtual void MinTarget(const FloatView& reward, const FloatView& absorbing, const FloatView& q0, const FloatView& q1,
                         double discount, const FloatView& y) = 0;
  // y = max(y, least) for y [members, rows, 1]; a NaN stays one.
  virtual void Floor(const DoubleView& least, const FloatView& y) = 0;
  // loss += weight * mean (q - y)^2; d_q = 2 (q - y) / rows.
  virtual void SquaredLoss(const FloatView& q, const FloatView& y, double weight, const FloatView& d_q,
                           const DoubleView& loss) = 0;

  // ---- scalars [members, 1, 1] and optimisers.
  virtual void SetZero(const DoubleView& value) = 0;
  virtual void RowMean(const DoubleView& rows, const DoubleView& mean) = 0;  // [members, rows, 1] -> [members, 1, 1]
  virtual void RowMean(const FloatView& rows, const DoubleView& mean) = 0;
  virtual void Guard(const DoubleView& value, const DoubleView& active) = 0;  // not finite: active = 0
  virtual void Accumulate(const DoubleView& value, double sign, const DoubleView& active,
                          const DoubleView& sum) = 0;  // sum [members, 1, 2]: total, count
  // Adam (betas 0.9/0.999, eps 1e-8) for active members, whose gradients are finite (GradientNorm).
  virtual void Adam(const AdamRange& range) = 0;
  virtual void Polyak(const FloatView& source, double tau, const DoubleView& active, const FloatView& target) = 0;

  // ---- watching an update, and undoing a part of it.
  // Euclidean norm of a gradient [members, 1, n]. Where an entry is not finite, active = 0.
  virtual void GradientNorm(const FloatView& gradient, const DoubleView& norm, const DoubleView& active) = 0;
  // Of two critics' values: the mean of all, the smallest, and the mean of |q0 - q1|.
  virtual void CriticValues(const FloatView& q0, const FloatView& q1, const DoubleView& mean, const DoubleView& least,
                            const DoubleView& gap) = 0;
  // least [members, 1, 2]: the smallest value of active members so far, and how many there were.
  virtual void AccumulateLeast(const DoubleView& value, const DoubleView& active, const DoubleView& least) = 0;
  virtual void Copy(const DoubleView& from, const DoubleView& to) = 0;
  // calm = 0 for a member with an entry beyond +-limit, or one that is no number.
  virtual void Calm(const FloatView& x, double limit, const DoubleView& calm) = 0;
  virtual void Calm(const DoubleView& x, double limit, const DoubleView& calm) = 0;
  // Copies the members that are not calm, and others where that is as cheap.
  virtual void CopyUnlessCalm(const FloatView& from, const DoubleView& calm, const FloatView& to) = 0;
  virtual void CopyUnlessCalm(const DoubleView& from, const DoubleView& calm, const DoubleView& to) = 0;
  // Copies the members that are neither active nor calm.
  virtual void PutBack(const FloatView& from, const DoubleView& active, const DoubleView& calm,
                       const FloatView& to) = 0;
  virtual void PutBack(const DoubleView& from, const DoubleView& active, const DoubleView& calm,
                       const DoubleView& to) = 0;
};

std::unique_ptr<Kernels> MakeFusedKernels();
// device: "cpu" or "cuda". Throws std::invalid_argument where LibTorch has no such device.
std::unique_ptr<Kernels> MakeTensorKernels(const std::string& device);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_KERNELS_H_
