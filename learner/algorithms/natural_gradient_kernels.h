// The step of RCPO's policy along the natural gradient (docs/algorithms.md 18.6). With the Gaussian policy's
// means mu(s) over N rows and n actions, and J the derivative of all means for the parameters of their net, the Hessian
// of mean KL (over rows and actions) at the policy itself is
//
//   H = J^T diag(1 / (N n std_i^2)) J   for the net's parameters,   2 / n   for each log_std_i,   0 between them.
//
// So H v takes one pass in forward mode, J v (Perceptrons::Tangent), and one backwards, J^T (Adjoint and
// ParameterGradient): nothing is differentiated twice. The solver's matrix is H + damping I.
//
// Vectors are ranges of blocks, [members, 1, n]; scalars [members, 1, 1].
#ifndef DATACOM_LEARNER_ALGORITHMS_NATURAL_GRADIENT_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_NATURAL_GRADIENT_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

// Conjugate gradients for (H + damping I) x = b.
struct ConjugateSolve {
  FloatView x, residual, direction, product;  // product: the matrix times direction, filled before each step
  DoubleView squared_residual, running;
};

class NaturalGradientKernels : public KernelGroup {
 public:
  // d_mean [members, rows, action] = share * tangent / std^2. log_std: [members, 1, action].
  virtual void Curvature(const FloatView& tangent, const FloatView& log_std, double share, const FloatView& d_mean) = 0;
  virtual void Collect(const FloatView& from, bool add, const FloatView& to) = 0;  // to = from, or to += from
  // product <- product + damping * direction, after factor * direction was written to its columns of log_std.
  virtual void FinishProduct(const FloatView& direction, int log_std, double factor, const DoubleView& damping,
                             const FloatView& product) = 0;
  // x = 0 and b = -gradient.
  virtual void BeginSolve(const FloatView& gradient, const ConjugateSolve& solve) = 0;
  // One iteration. A member stops when its residual's norm is below 1e-10. Both divisions add 1e-6 to the denominator,
  // as the released code does.
  virtual void ContinueSolve(const ConjugateSolve& solve) = 0;
  // parameters += x sqrt(2 length / (<x, product> + 1e-8)) for active members; product: the matrix times x. Members
  // whose step is not finite become inactive.
  virtual void NaturalStep(const FloatView& x, const FloatView& product, const DoubleView& length,
                           const DoubleView& active, const FloatView& parameters) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_NATURAL_GRADIENT_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
