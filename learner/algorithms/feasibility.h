// The learned feasibility constraint of D-ATACOM. At a constraint state z it gives one value of the discounted future
// violation. The constraint is k = value - delta, with delta the threshold; k has a Jacobian for z and is fitted to its
// own targets. A derived class decides what the value is (the CVaR of a Gaussian, a quantile) and which nets compute
// it.
//
// Works on arrays of the algorithm's block. Derived classes evaluate all rows of an update in one pass: z holds s', s
// and the failure rows. k and J are computed at s' and s, the loss at s and the failure rows.
#ifndef DATACOM_LEARNER_ALGORITHMS_FEASIBILITY_H_
#define DATACOM_LEARNER_ALGORITHMS_FEASIBILITY_H_

#include "learner/algorithms/algorithm.h"
#include "learner/nn/kernels.h"

namespace datacom::learner {

class Feasibility {
 public:
  virtual ~Feasibility() = default;
  virtual void Declare(const AlgorithmConfig& config, ParameterLayout* layout) = 0;
  int64_t first() const { return first_; }
  int64_t size() const { return size_; }
  // Derived classes call this first and then make the workspace of their nets.
  virtual void MakeWorkspace(const AlgorithmConfig& config, int64_t target_first, int block, Kernels* kernels);
  // Copies the block's rows; the block starts at this member of the batch.
  virtual void LoadBatch(const Batch& batch, int batch_member);

  // Constraint k and Jacobian J at s' and s, with the current online nets.
  virtual void Evaluate(const FloatView& parameters, const DoubleView& delta) = 0;
  // Both: [block, 2B, ...], s' before s.
  const DoubleView& k() const { return k_; }
  const DoubleView& J() const { return J_; }
  const DoubleView& k_now() const { return k_now_; }  // [block, B, 1]
  const DoubleView& J_now() const { return J_now_; }  // [block, B, q + x]
  const DoubleView& k_next() const { return k_next_; }
  const DoubleView& J_next() const { return J_next_; }
  // After Evaluate, before the nets change: loss [block, 1, 1] and parameter gradients.
  virtual void LossGradient(const FloatView& parameters, const FloatView& targets, const FloatView& gradients,
                            const DoubleView& loss) = 0;

  // The values of one member at `rows` states z [rows, q + x], with its parameters [1, 1, size].
  void Risk(const FloatView& parameters, int member, const float* z, int rows, double* value);

 protected:
  // Fills k_[0, count) with the values at z_[0, count) of one member, with delta = 0.
  virtual void EvaluateRisk(const FloatView& parameters, int member, int count) = 0;

  int64_t first_ = 0, size_ = 0;
  int batch_ = 0, failures_ = 0, z_dim_ = 0;
  int slice_first_ = 0;
  int member_ = 0;  // first of the block
  double discount_ = 0;
  Kernels* kernels_ = nullptr;
  FloatView z_;       // [block, B + B + F, q + x]: s', s, failure rows
  FloatView next_z_;  // [block, B + F, q + x]: s', next of failure rows
  FloatView cost_, absorbing_, ones_;
  DoubleView failure_weight_, no_delta_;
  DoubleView k_, J_, k_now_, J_now_, k_next_, J_next_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_FEASIBILITY_H_
// SPDX-License-Identifier: Apache-2.0
