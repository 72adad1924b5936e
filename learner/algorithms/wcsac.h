// WCSAC (learner/algorithms/README.md 11): LagSAC whose cost critic is a Gaussian over the discounted cost of [s, a].
// Multiplier, damping and actor use its CVaR at the accepted risk instead of the expectation.
#ifndef DATACOM_LEARNER_ALGORITHMS_WCSAC_H_
#define DATACOM_LEARNER_ALGORITHMS_WCSAC_H_

#include "learner/algorithms/gaussian_kernels.h"
#include "learner/algorithms/lag_sac.h"

namespace datacom::learner {

class Wcsac : public LagSac {
 public:
  explicit Wcsac(const AlgorithmConfig& config);

 protected:
  FloatView ExecutedCost() override;
  FloatView StoredCost() override;
  void SpreadCostGradient() override;
  void CostLoss(const FloatView& cost, const DoubleView& loss) override;

 private:
  GaussianKernels* const gaussian_kernels_;
  DoubleView margin_;                      // [M, 1, 1]
  FloatView executed_cvar_, stored_cvar_;  // [block, B, 1]
  DoubleView no_failures_;                 // [block, 1, 1]
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_WCSAC_H_
