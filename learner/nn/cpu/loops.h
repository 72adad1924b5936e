// The loops of CpuKernels over rows of float32 numbers, built for AVX2 or NEON and for AVX-512 (loops_kernel.h). All
// give the same bits: sums are sixteen partial sums in a fixed tree, or in the order of the rows. Matrices are
// row-major; a stride is the distance between rows. Pure functions that allocate nothing.
#ifndef DATACOM_LEARNER_NN_CPU_LOOPS_H_
#define DATACOM_LEARNER_NN_CPU_LOOPS_H_

#include <cstdint>

#include "learner/nn/activation.h"

namespace datacom::learner {

enum class Gemm { kPlain, kTransposeA, kTransposeB };

// One step of Adam on n numbers. root: 1 / sqrt(1 - 0.999^step); step_size: rate / (1 - 0.9^step).
struct AdamStep {
  const float* gradient;
  float *parameter, *first, *second;
  int n;
  float step_size, root;
};

struct Loops {
  // y = act(y + bias).
  void (*activate)(Activation activation, const float* bias, int rows, int n, int64_t stride, float* y);
  // adjoint *= act'(hidden), from the activation's value.
  void (*multiply_slope)(Activation activation, const float* hidden, int64_t hidden_stride, int rows, int n,
                         float* adjoint, int64_t stride);
  // x = y + bias; y = x sigmoid(x), and slope, the derivative of that.
  void (*swish)(const float* bias, int rows, int n, int64_t stride, float* y, int64_t slope_stride, float* slope);
  // x = y + bias; normal = (x - mean) inverse with inverse = 1 / sqrt(variance + 1e-5) over the n numbers of a row;
  // y = relu(normal). inverse: [rows, 1]. NaN in a row whose squares overflow.
  void (*normalised_relu)(const float* bias, int rows, int n, int64_t stride, float* y, int64_t normal_stride,
                          float* normal, int64_t inverse_stride, float* inverse);
  // Turns `normal` into the adjoint of x, for the gradient d of y.
  void (*normalised_relu_adjoint)(const float* d, int64_t d_stride, const float* inverse, int64_t inverse_stride,
                                  int rows, int n, float* normal, int64_t stride);
  // y *= x, entry by entry.
  void (*multiply_rows)(const float* x, int64_t x_stride, int rows, int n, float* y, int64_t stride);
  // y [rows, outputs] = (y +) (bias +) x w^T for few outputs; w: [outputs, n], dense; bias may be null.
  void (*narrow_product)(const float* x, int64_t x_stride, int rows, int n, const float* w, int outputs,
                         const float* bias, bool add, float* y, int64_t stride);
  // adjoint [rows, n] = (d w) * act'(hidden) for few outputs; d: [rows, outputs], w: [outputs, n], dense.
  void (*narrow_adjoint)(Activation activation, const float* d, int64_t d_stride, int outputs, const float* w,
                         const float* hidden, int64_t hidden_stride, int rows, int n, float* adjoint, int64_t stride);
  // sums [n] = x^T 1.
  void (*column_sums)(const float* x, int64_t stride, int rows, int n, float* sums);
  // sums [n] = x^T d for one column d.
  void (*weighted_column_sums)(const float* x, int64_t stride, const float* d, int64_t d_stride, int rows, int n,
                               float* sums);
  // to += scale x, row by row; scale: [rows, 1].
  void (*add_scaled_rows)(const float* x, int64_t stride, const float* scale, int64_t scale_stride, int rows, int n,
                          float* to, int64_t to_stride);
  // x *= scale, row by row.
  void (*scale_rows)(const float* scale, int64_t scale_stride, int rows, int n, float* x, int64_t stride);
  // to [columns, rows] = from [rows, columns] transposed.
  void (*transpose)(const float* from, int64_t stride, int rows, int columns, float* to, int64_t to_stride);
  // Sum of squares. Not finite if an entry is not finite or if the squares of 2,048 entries overflow.
  double (*squared_sum)(const float* x, int n);
  void (*adam)(const AdamStep& step);
  // to = take from + keep to.
  void (*polyak)(const float* from, float take, float keep, int n, float* to);

  // ---- y = f(x) within 3 ulp. x and y may be the same array. NaN stays NaN.
  void (*exp)(int n, const float* x, float* y);  // for x in [-87, 88]; outside, the value at the nearer bound
  void (*log)(int n, const float* x, float* y);  // of positive normal numbers
  void (*tanh)(int n, const float* x, float* y);
  void (*sigmoid)(int n, const float* x, float* y);
  void (*softplus)(int n, const float* x, float* y);

  // ---- implicit quantile networks
  void (*cosines)(float level, int n, float* features);                        // cos(pi i level), i = 0..
  void (*gated)(const float* base, const float* gate, int n, float* product);  // relu(base) * gate
  // Turns the gradient for the product into the gradients for base (added) and, in place, for the argument of the
  // gate's sigmoid.
  void (*gated_gradient)(const float* base, const float* gate, int n, float* d_base, float* d_product);
  // For sixteen quantiles: sums over the targets of the Huber loss weighted by level, and of its slope.
  void (*quantile_huber)(const float* quantile, const float* level, const float* target, int targets, float* sum,
                         float* slope);

  // Multiply of gemm.h. panel: memory for [k, 32] numbers, aligned to 64 bytes.
  void (*multiply)(Gemm form, int m, int n, int k, const float* a, int64_t lda, const float* b, int64_t ldb, bool add,
                   float* c, int64_t ldc, float* panel);

  // The most that one core can do, for benchmarks: in each of `steps`, one fused multiply-add for every sum that the
  // registers hold. Returns the number of operations, two per multiply-add.
  double (*fused_multiply_adds)(int steps);
};

// On ARM both are built for NEON. The second may be called only where HasAvx512().
extern const Loops kLoopsAvx2, kLoopsAvx512;
const Loops& ChosenLoops();  // for ChosenInstructionSet()

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_LOOPS_H_
// SPDX-License-Identifier: Apache-2.0
