// Passes and losses of an implicit quantile network (docs/algorithms.md 7). Each row has N levels; quantile j
// of row r is in row r * N + j.
#ifndef DATACOM_LEARNER_ALGORITHMS_QUANTILE_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_QUANTILE_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

class QuantileKernels : public KernelGroup {
 public:
  // cos(pi i level), i = 0..: level [members, rows, N] -> features [members, rows * N, embedding].
  virtual void LevelFeatures(const FloatView& level, const FloatView& features) = 0;
  // product = relu(base) * sigmoid(embedding) for each row of base [members, rows, width]. embedding is [members, rows
  // * N, width], or one row for all; it is replaced by its sigmoid.
  virtual void QuantileProduct(const FloatView& base, const FloatView& embedding, const FloatView& product) = 0;
  // To be called after QuantileProduct: turns the gradient for the product into the gradients for base and, in place,
  // for embedding.
  virtual void QuantileProductGradient(const FloatView& base, const FloatView& embedding, const FloatView& d_product,
                                       const FloatView& d_base) = 0;
  // Constraint softplus(value) - delta and its Jacobian, from linear outputs and their gradients for z.
  virtual void QuantileRisk(const FloatView& value, const FloatView& gradient, const DoubleView& delta,
                            const DoubleView& k, const DoubleView& J) = 0;
  // y = max(cost, 0) + discount (1 - absorbing) softplus(next): cost [members, rows, 1], next, y [members, rows * N,
  // 1].
  virtual void QuantileTarget(const FloatView& cost, const FloatView& absorbing, const FloatView& next, double discount,
                              const FloatView& y) = 0;
  // Quantile Huber loss of softplus(value) at level [members, rows, N] against every y of its row, and the gradient for
  // value. row_weight [members, rows, 1]: 1 / the number of rows that count, which come first, and 0 for the others.
  virtual void QuantileLoss(const FloatView& value, const FloatView& y, const FloatView& level,
                            const FloatView& row_weight, const FloatView& d_value, const DoubleView& loss) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_QUANTILE_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
