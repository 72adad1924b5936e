// The Gaussian feasibility value function (algorithms.md 3, 4): two sigmoid perceptrons on the constraint state z give
// mean (through softplus) and log standard deviation of the discounted future violation; their CVaR minus delta is the
// constraint.
//
// A part of an algorithm, not one itself: works on arrays of the algorithm's block. One evaluation of the online nets
// serves everything in an update: constraint and Jacobian at s' and s, and the loss at s and the failure rows. The
// hidden adjoints of a unit output are the Jacobian's; multiplied by the loss gradient of their row they are the
// loss's.
#ifndef DATACOM_LEARNER_ALGORITHMS_GAUSSIAN_FEASIBILITY_H_
#define DATACOM_LEARNER_ALGORITHMS_GAUSSIAN_FEASIBILITY_H_

#include <vector>

#include "learner/algorithms/algorithm.h"
#include "learner/nn/kernels.h"

namespace datacom::learner {

class GaussianFeasibility {
 public:
  void Declare(const AlgorithmConfig& config, ParameterLayout* layout);  // "constraint.mean", "constraint.log_std"
  int64_t first() const { return first_; }
  int64_t size() const { return size_; }
  void MakeWorkspace(const AlgorithmConfig& config, int64_t target_first, int block, Kernels* kernels);
  // The block's rows; `member` is its first.
  void LoadBatch(const Batch& batch, int member);

  // Constraint k and Jacobian J at s' and s, with the current online nets.
  void Evaluate(const FloatView& parameters, const DoubleView& margin, const DoubleView& delta);
  const DoubleView& k_now() const { return k_now_; }  // [block, B, 1]
  const DoubleView& J_now() const { return J_now_; }  // [block, B, q + x]
  const DoubleView& k_next() const { return k_next_; }
  const DoubleView& J_next() const { return J_next_; }
  // After Evaluate, before the nets change: loss [block, 1, 1] and parameter gradients.
  void LossGradient(const FloatView& targets, const FloatView& gradients, const DoubleView& loss);

  // CVaR of one member at `rows` states z [rows, q + x], with its parameters [1, 1, size].
  void Risk(const FloatView& parameters, const DoubleView& margin, const float* z, int rows, double* cvar);

 private:
  struct Net {
    Mlp online, target;
    MlpTape tape, jacobian_rows, loss_rows, target_tape;
    FloatView jacobian;  // [block, 2B, q + x]
    FloatView d_out;     // [block, B + F, 1]
  };
  int64_t first_ = 0, size_ = 0;
  int batch_ = 0, failures_ = 0, z_dim_ = 0;
  double discount_ = 0;
  Kernels* kernels_ = nullptr;
  Net mean_, log_std_;
  FloatView z_;       // [block, B + B + F, q + x]: s', s, failure rows
  FloatView next_z_;  // [block, B + F, q + x]: s', next of failure rows
  FloatView cost_, absorbing_, ones_;
  DoubleView failure_weight_, no_delta_;
  DoubleView k_, J_, k_now_, J_now_, k_next_, J_next_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_GAUSSIAN_FEASIBILITY_H_
