// LagSAC (docs/algorithms.md 10): soft actor-critic whose actor loss includes the expected discounted cost,
// weighted by a learned Lagrange multiplier. A cost critic on [s, a] estimates that cost. The policy's action is
// executed unchanged. WCSAC (wcsac.cc) is this algorithm with a Gaussian cost critic.
#ifndef DATACOM_LEARNER_ALGORITHMS_LAG_SAC_H_
#define DATACOM_LEARNER_ALGORITHMS_LAG_SAC_H_

#include <string>
#include <vector>

#include "learner/algorithms/cost_kernels.h"
#include "learner/algorithms/soft_actor_critic.h"

namespace datacom::learner {

class LagSac : public SoftActorCritic {
 public:
  explicit LagSac(const AlgorithmConfig& config) : LagSac(config, {"cost_critic"}) {}
  Stats GetStats() const override;

 protected:
  LagSac(const AlgorithmConfig& config, const std::vector<std::string>& cost_nets);
  void LoadBatch(const Batch& batch) override;
  void PolicyGradients() override;
  void EvaluateStored() override;
  void ValueGradients() override;

  // The cost critic's estimates at [s, executed] and [s, stored], [block, B, 1]; here its one output.
  virtual FloatView ExecutedCost() { return cost_critics_.executed(0); }
  virtual FloatView StoredCost() { return cost_critics_.stored(0); }
  // d_out(0) holds the gradient for ExecutedCost(); fills the gradients of the other outputs.
  virtual void SpreadCostGradient() {}
  // Loss of the stored rows and the outputs' gradients; the targets are evaluated already.
  virtual void CostLoss(const FloatView& cost, const DoubleView& loss);

  CostKernels* const cost_kernels_;
  CriticEnsemble cost_critics_;

 private:
  FloatView MultiplierRaw(const FloatView& block) const { return block.Cols(static_cast<int>(multiplier_raw_), 1); }
  void AddPricedCost();
  void CostCriticGradient();

  int64_t multiplier_raw_ = 0;
  Optimizer multiplier_optimizer_, cost_optimizer_;
  Statistic cost_loss_, mean_cost_;
  DoubleView limit_, damping_;  // [M, 1, 1]
  DoubleView price_;            // [block, 1, 1]
  FloatView cost_, y_;          // [block, B, 1]
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_LAG_SAC_H_
// SPDX-License-Identifier: Apache-2.0
