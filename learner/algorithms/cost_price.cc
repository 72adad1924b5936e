#include "learner/algorithms/cost_price.h"

namespace datacom::learner {

void CostPrice::Declare(const AlgorithmConfig& config, ParameterLayout* layout) {
  critic_.Declare({"cost_critic"}, CriticKind::kPlain, config, layout);
}

void CostPrice::MakeWorkspace(const AlgorithmConfig& config, int block, Kernels* kernels) {
  kernels_ = kernels;
  critic_kernels_ = kernels->Group<CriticKernels>();
  cost_kernels_ = kernels->Group<CostKernels>();
  discount_ = config.learner.discount();
  critic_.MakeWorkspace(config, block, kernels);
  cost_ = kernels->NewFloats(block, BatchSize(config), 1), y_ = kernels->NewFloats(block, BatchSize(config), 1);
  d_cost_ = kernels->NewFloats(block, BatchSize(config), config.action_dim);
  one_ = kernels->NewDoubles(block, 1, 1, 1), loss_ = kernels->NewDoubles(block, 1, 1);
}

void CostPrice::EvaluateStored(const FloatView& parameters, const CriticInput& input) {
  critic_.EvaluateStored(parameters, input);
}

void CostPrice::AddActionGradient(const FloatView& parameters, const CriticInput& input, const DoubleView& multiplier,
                                  const FloatView& d_action) {
  critic_.Evaluate(parameters, input);
  kernels_->SetZero(loss_);
  critic_kernels_->WeightedMean(critic_.executed(0), one_, critic_.d_out(0), loss_);
  critic_.ActionGradient(parameters, critic_.nets(), /*add=*/false, d_cost_);
  cost_kernels_->AddPriced(multiplier, d_cost_, d_action);
}

void CostPrice::LossGradient(const FloatView& parameters, const FloatView& targets, const CriticInput& input,
                             const FloatView& gradients) {
  critic_.EvaluateTargets(targets, input);
  cost_kernels_->CostTarget(cost_, input.absorbing, critic_.next(0), discount_, y_);
  critic_.Regress(parameters, input, y_, gradients, loss_);
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
