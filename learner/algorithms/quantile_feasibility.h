// The feasibility value function as an implicit quantile network (docs/algorithms.md 7): eta(z, tau) is the
// tau-quantile of the discounted future violation. The net is a perceptron on the product of an embedding of z and an
// embedding of tau. The value is the quantile at 1 - accepted risk; the fit uses random levels tau.
#ifndef DATACOM_LEARNER_ALGORITHMS_QUANTILE_FEASIBILITY_H_
#define DATACOM_LEARNER_ALGORITHMS_QUANTILE_FEASIBILITY_H_

#include "learner/algorithms/feasibility.h"
#include "learner/algorithms/quantile_kernels.h"

namespace datacom::learner {

// 1 - rho, subtracted in double and rounded once. The released code computes it through a float32 logit of rho, so the
// last bits differ.
float QuantileLevel(double accepted_risk);

class QuantileFeasibility : public Feasibility {
 public:
  // "constraint.base" of z, "constraint.embedding" of tau, "constraint.quantile" of their product.
  void Declare(const AlgorithmConfig& config, ParameterLayout* layout) override;
  void MakeWorkspace(const AlgorithmConfig& config, int64_t target_first, int block, Kernels* kernels) override;
  void LoadBatch(const Batch& batch, int batch_member) override;
  void Evaluate(const FloatView& parameters, const DoubleView& delta) override;
  void LossGradient(const FloatView& parameters, const FloatView& targets, const FloatView& gradients,
                    const DoubleView& loss) override;

 protected:
  void EvaluateRisk(const FloatView& parameters, int member, int count) override;

 private:
  struct Net {
    MlpLayout base, embedding, quantile;
  };
  // Computes the quantiles of B + F rows at random levels from base's output, into quantile_tape.out.
  void Propagate(const FloatView& block, const Net& net, const FloatView& base, const FloatView& level,
                 const MlpTape& quantile_tape);

  QuantileKernels* quantile_kernels_ = nullptr;
  Net online_, target_;
  MlpTape base_tape_, risk_rows_, loss_rows_, target_base_tape_;
  FloatView d_base_;  // [block, 2B + F, width]

  // Evaluation at the constraint's level.
  FloatView risk_features_;  // [M, 1, embedding]
  MlpTape risk_embedding_, risk_quantile_;
  FloatView risk_product_, d_risk_product_, jacobian_;  // [block, 2B, ..]

  // Evaluation at random levels, (B + F) N rows.
  FloatView level_, next_level_;  // [block, B + F, N]
  FloatView features_, product_, d_product_, y_, d_value_;
  MlpTape embedding_, quantile_, target_quantile_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_QUANTILE_FEASIBILITY_H_
// SPDX-License-Identifier: Apache-2.0
