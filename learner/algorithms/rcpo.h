// RCPO (docs/algorithms.md 18.6): one step of the policy per epoch along the natural gradient of the reward's
// advantage minus the cost's, weighed by a Lagrange multiplier. The step's length is the target divergence; there is no
// line search. Then the critics learn in passes of minibatches.
#ifndef DATACOM_LEARNER_ALGORITHMS_RCPO_H_
#define DATACOM_LEARNER_ALGORITHMS_RCPO_H_

#include "learner/algorithms/on_policy.h"
#include "learner/algorithms/on_policy_kernels.h"

namespace datacom::learner {

class Rcpo : public OnPolicy {
 public:
  explicit Rcpo(const AlgorithmConfig& config);

 protected:
  void Learn() override;
  // Inside of a Run, after Compute. PolicyGradient writes into gradients().
  void PolicyGradient();
  // out = (H + damping I) direction (on_policy_kernels.h), ranges of the actor.
  void FisherProduct(const FloatView& direction, const FloatView& out);

 private:
  void NaturalStep();
  // The mean net's gradient from d_mean_ on chunk i, copied or added to `to`.
  void CollectGradient(int chunk, const FloatView& to);
  FloatView MeanPart(const FloatView& range) const { return range.Cols(0, static_cast<int>(log_std_)); }

  ConjugateSolve solve_;
  FloatView chunk_gradient_;  // [block, 1, actor]
  MlpTape tangent_;
  DoubleView damping_, step_length_;  // [M, 1, 1]
  DoubleView unclipped_;              // [block, 1, 1]
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_RCPO_H_
// SPDX-License-Identifier: Apache-2.0
