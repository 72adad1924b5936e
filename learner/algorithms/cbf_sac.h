// CBF-SAC (learner/algorithms/README.md 13): SAC whose actions the acting rule filters by a learned control barrier
// function V(q), safe where V <= 0. V is fitted to be below -margin where the cost is not positive and above margin
// where it is, and so that filtering the stored actions does not relax the filter's constraint. The replay holds the
// policy's action before the filter.
#ifndef DATACOM_LEARNER_ALGORITHMS_CBF_SAC_H_
#define DATACOM_LEARNER_ALGORITHMS_CBF_SAC_H_

#include <string>

#include "learner/algorithms/barrier_kernels.h"
#include "learner/algorithms/sac.h"

namespace datacom::learner {

class CbfSac : public Sac {
 public:
  explicit CbfSac(const AlgorithmConfig& config);
  Stats GetStats() const override;
  ActingParameters GetActingParameters(int member) const override;

 protected:
  void LoadBatch(const Batch& batch) override;
  void EvaluateState() override;

 private:
  BarrierKernels* const barrier_kernels_;
  MlpLayout barrier_;
  Optimizer barrier_optimizer_;
  Statistic barrier_loss_, mean_barrier_;
  MlpTape tape_, tangent_;
  FloatView q_;                                 // [block, B, q]
  FloatView slope_, ones_, d_value_, d_slope_;  // dV/dq; gradients of the loss for V and dV/dq
  FloatView cost_, action_;
  DoubleView f_, G_;
  DoubleView numbers_;  // [M, 1, BarrierInput::kNumbers]
  ActionBox box_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_CBF_SAC_H_
