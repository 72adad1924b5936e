// The gradient of the discounted cost in the actor's loss (docs/algorithms.md 6.1): a critic of the cost on [s, a] with
// a target, whose gradient for the executed action is weighed by a multiplier. Works on arrays of the algorithm's
// block; not thread-safe.
#ifndef DATACOM_LEARNER_ALGORITHMS_COST_PRICE_H_
#define DATACOM_LEARNER_ALGORITHMS_COST_PRICE_H_

#include <cstdint>

#include "learner/algorithms/cost_kernels.h"
#include "learner/algorithms/critic_ensemble.h"

namespace datacom::learner {

class CostPrice {
 public:
  void Declare(const AlgorithmConfig& config, ParameterLayout* layout);  // "cost_critic"
  int64_t first() const { return critic_.first(); }
  int64_t size() const { return critic_.size(); }
  void MakeWorkspace(const AlgorithmConfig& config, int block, Kernels* kernels);
  void LoadBatch(const float* cost) { kernels_->Upload(cost, cost_); }  // [block, B] raw

  void EvaluateStored(const FloatView& parameters, const CriticInput& input);
  // Evaluates executed and stored actions, and adds the weighted gradient to d_action [block, B, action], which holds
  // that of the actor's objective. multiplier: [block, 1, 1].
  void AddActionGradient(const FloatView& parameters, const CriticInput& input, const DoubleView& multiplier,
                         const FloatView& d_action);
  // After one of the two: gradients of the squared error of the stored actions.
  void LossGradient(const FloatView& parameters, const FloatView& targets, const CriticInput& input,
                    const FloatView& gradients);

 private:
  Kernels* kernels_ = nullptr;
  CriticKernels* critic_kernels_ = nullptr;
  CostKernels* cost_kernels_ = nullptr;
  CriticEnsemble critic_;
  double discount_ = 0;
  FloatView cost_, y_, d_cost_;  // [block, B, 1], [block, B, 1], [block, B, action]
  DoubleView one_, loss_;        // [block, 1, 1]
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_COST_PRICE_H_
// SPDX-License-Identifier: Apache-2.0
