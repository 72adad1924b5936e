// An algorithm for tests alone, "toy": SAC, and a net that is fitted to the cost of a transition by a loss of its own.
// It was added by the steps of "Add an algorithm" in README.md (core_toy_test.cc says by which).
#ifndef DATACOM_TESTS_LEARNER_TOY_TOY_ALGORITHM_H_
#define DATACOM_TESTS_LEARNER_TOY_TOY_ALGORITHM_H_

#include "learner/algorithms/sac.h"
#include "tests/learner/toy/toy_kernels.h"

namespace datacom::learner {

class ToyAlgorithm : public Sac {
 public:
  explicit ToyAlgorithm(const AlgorithmConfig& config);
  Stats GetStats() const override;  // constraint_loss: of the net of costs

 protected:
  void LoadBatch(const Batch& batch) override;
  void EvaluateState() override;

 private:
  FloatView Observation() const { return critic_input().rows.Rows(0, batch_).Cols(0, config_.obs_dim); }

  ToyKernels* const toy_kernels_;
  MlpLayout cost_model_;
  Optimizer cost_optimizer_;
  Statistic cost_loss_;
  MlpTape tape_;
  FloatView cost_, d_prediction_;  // [block, B, 1]
};

}  // namespace datacom::learner

#endif  // DATACOM_TESTS_LEARNER_TOY_TOY_ALGORITHM_H_
