// The Gaussian feasibility value function (docs/algorithms.md 3 and 4): two sigmoid perceptrons on the
// constraint state z give mean (through softplus) and log standard deviation of the discounted future violation. Its
// value is the CVaR at the accepted risk.
//
// The online nets are evaluated once per update. The hidden adjoints of a unit output give the Jacobian; multiplied by
// the loss gradient of their row they give the gradient of the loss.
#ifndef DATACOM_LEARNER_ALGORITHMS_GAUSSIAN_FEASIBILITY_H_
#define DATACOM_LEARNER_ALGORITHMS_GAUSSIAN_FEASIBILITY_H_

#include "learner/algorithms/feasibility.h"
#include "learner/algorithms/gaussian_kernels.h"

namespace datacom::learner {

class GaussianFeasibility : public Feasibility {
 public:
  void Declare(const AlgorithmConfig& config, ParameterLayout* layout) override;  // "constraint.mean", .log_std
  void MakeWorkspace(const AlgorithmConfig& config, int64_t target_first, int block, Kernels* kernels) override;
  void Evaluate(const FloatView& parameters, const DoubleView& delta) override;
  void LossGradient(const FloatView& parameters, const FloatView& targets, const FloatView& gradients,
                    const DoubleView& loss) override;

 protected:
  void EvaluateRisk(const FloatView& parameters, int member, int count) override;

 private:
  struct Net {
    MlpLayout online, target;
    MlpTape tape, jacobian_rows, loss_rows, target_tape;
    FloatView jacobian;  // [block, 2B, q + x]
    FloatView d_out;     // [block, B + F, 1]
  };
  // Calls body(net) for both nets, at the same time if a thread has nothing to do.
  template <class Body>
  void EachNet(const Body& body) const {
    kernels_->Together([&] { body(mean_); }, [&] { body(log_std_); });
  }

  GaussianKernels* gaussian_kernels_ = nullptr;
  Net mean_, log_std_;
  DoubleView margin_;  // [M, 1, 1]
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_GAUSSIAN_FEASIBILITY_H_
// SPDX-License-Identifier: Apache-2.0
