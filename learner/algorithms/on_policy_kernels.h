// The arithmetic of PPOLag and RCPO on the rows of an epoch (docs/algorithms.md 18): advantages,
// minibatches, the terms that all their gradients share, PPO's surrogate loss and RCPO's natural gradient. Rows are in
// the order of time, lane after lane.
#ifndef DATACOM_LEARNER_ALGORITHMS_ON_POLICY_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_ON_POLICY_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

// The inputs of generalised advantage estimation, [members, rows, 1].
struct PathRows {
  FloatView signal;               // reward or raw cost
  FloatView absorbing, path_end;  // 0/1; the last row counts as the end of a path
  FloatView value, next_value;    // V(s); V(s'), read only at path ends
};

struct PolicyOutput {
  FloatView mean;     // [members, rows, action]
  FloatView log_std;  // [members, 1, action]
};

struct ActedRows {
  FloatView action;     // [members, rows, action]
  FloatView log_prob;   // [members, rows, 1]: log-density of action under the policy that acted
  FloatView advantage;  // [members, rows, 1]
};

// Conjugate gradients for (H + damping I) x = b.
struct ConjugateSolve {
  FloatView x, residual, direction, product;  // product: the matrix times direction, filled before each step
  DoubleView squared_residual, running;
};

class OnPolicyKernels : public KernelGroup {
 public:
  // With x_t = max(signal, least) and v'_t = V of the next row, or next_value at a path's end:
  //   d_t = x_t + discount (1 - absorbing_t) v'_t - value_t
  //   advantage_t = d_t + discount lambda advantage_(t+1), without the second term at a path's end
  //   target_t = advantage_t + value_t
  // lambda: [members, 1, 1].
  virtual void Advantages(const PathRows& rows, double least, double discount, const DoubleView& lambda,
                          const FloatView& advantage, const FloatView& target) = 0;
  // x <- (x - mean) / (std + 1e-8) with the standard deviation that divides by the number of rows.
  virtual void Standardise(const FloatView& x) = 0;
  virtual void Centre(const FloatView& x) = 0;  // x <- x - mean
  // out = (reward - multiplier cost) / (1 + multiplier). multiplier: [members, 1, 1].
  virtual void PriceAdvantages(const FloatView& reward, const FloatView& cost, const DoubleView& multiplier,
                               const FloatView& out) = 0;
  // out [members, n, cols] = the rows with these indices. index: [members, n, 1], whole numbers.
  virtual void Gather(const FloatView& rows, const DoubleView& index, const FloatView& out) = 0;
  // Adds weight * sum of squares of the parameters to a loss, and its gradient to theirs. Then rounds the loss to
  // float32, so that a loss beyond float32's range is not finite. parameters, gradient: [members, 1, n].
  virtual void AddSquares(const FloatView& parameters, const DoubleView& weight, const FloatView& gradient,
                          const DoubleView& loss) = 0;
  // gradient *= min(1, limit / (norm + 1e-6)).
  virtual void Shorten(const DoubleView& norm, const DoubleView& limit, const FloatView& gradient) = 0;

  // The loss of a Gaussian policy on rows that an older policy has made, and the divergence of the two
  // (docs/algorithms.md 18.5). The standard deviation exp(log_std) does not depend on the state.

  // With ratio = p(action) / exp(log_prob), A = advantage:
  //   loss = -share * sum over the rows of min(ratio A, clamp(ratio, 1 - clip, 1 + clip) A), rounded to float32
  // and its gradients, d_mean [members, rows, action] and d_log_std [members, 1, action]. If `add`, loss and d_log_std
  // are added to. clip: [members, 1, 1]; infinity is allowed.
  virtual void SurrogateLoss(const PolicyOutput& policy, const ActedRows& rows, const DoubleView& clip, double share,
                             bool add, const FloatView& d_mean, const FloatView& d_log_std, const DoubleView& loss) = 0;
  // sum += share * sum over rows and actions of KL(before || after).
  virtual void AddDivergence(const PolicyOutput& before, const PolicyOutput& after, double share,
                             const DoubleView& sum) = 0;
  // Active members with divergence > limit become inactive and stopped; those without a finite divergence inactive.
  virtual void StopBeyond(const DoubleView& divergence, const DoubleView& limit, const DoubleView& active,
                          const DoubleView& stopped) = 0;
  virtual void Resume(const DoubleView& stopped, const DoubleView& active) = 0;  // stopped members are active again

  // The step of RCPO's policy along the natural gradient (docs/algorithms.md 18.6). With the Gaussian
  // policy's means mu(s) over N rows and n actions, and J the derivative of all means for the parameters of their net,
  // the Hessian of mean KL (over rows and actions) at the policy itself is
  //
  //   H = J^T diag(1 / (N n std_i^2)) J   for the net's parameters,   2 / n   for each log_std_i,   0 between them.
  //
  // So H v takes one pass in forward mode, J v (Kernels::Tangent), and one backwards, J^T (Adjoint and
  // ParameterGradient): nothing is differentiated twice. The solver's matrix is H + damping I.
  //
  // Vectors are ranges of blocks, [members, 1, n]; scalars [members, 1, 1].

  // d_mean [members, rows, action] = share * tangent / std^2. log_std: [members, 1, action].
  virtual void Curvature(const FloatView& tangent, const FloatView& log_std, double share, const FloatView& d_mean) = 0;
  virtual void Collect(const FloatView& from, bool add, const FloatView& to) = 0;  // to = from, or to += from
  // product <- product + damping * direction, after factor * direction was written to its columns of log_std.
  virtual void FinishProduct(const FloatView& direction, int log_std, double factor, const DoubleView& damping,
                             const FloatView& product) = 0;
  // x = 0 and b = -gradient.
  virtual void BeginSolve(const FloatView& gradient, const ConjugateSolve& solve) = 0;
  // One iteration. A member stops when its residual's norm is below 1e-10. Both divisions add 1e-6 to the denominator,
  // as the released code does.
  virtual void ContinueSolve(const ConjugateSolve& solve) = 0;
  // parameters += x sqrt(2 length / (<x, product> + 1e-8)) for active members; product: the matrix times x. Members
  // whose step is not finite become inactive.
  virtual void NaturalStep(const FloatView& x, const FloatView& product, const DoubleView& length,
                           const DoubleView& active, const FloatView& parameters) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_ON_POLICY_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
