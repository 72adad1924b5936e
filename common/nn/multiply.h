// The matrix product of a perceptron's layer, float32.
//
// Every value is one chain of fused multiply-adds over the inputs in order, starting at the bias: its bits depend
// neither on the batch nor on the instruction set. Pure functions; allocate nothing.
#ifndef DATACOM_COMMON_NN_MULTIPLY_H_
#define DATACOM_COMMON_NN_MULTIPLY_H_

namespace datacom {

inline constexpr int kVectorFloats = 8;  // rows of w and y are padded to a multiple of this

// y [batch, stride] = bias [stride] + x [batch, depth] w [depth, stride]; bias may be null (0). Rows of x are x_stride
// apart. Uses the widest vectors that the processor has.
void Multiply(int batch, int depth, const float* x, int x_stride, const float* w, int stride, const float* bias,
              float* y);

// The same with one instruction set; MultiplyAvx512 may be called only if HasAvx512(). On ARM MultiplyAvx2 uses NEON.
void MultiplyAvx2(int batch, int depth, const float* x, int x_stride, const float* w, int stride, const float* bias,
                  float* y);
void MultiplyAvx512(int batch, int depth, const float* x, int x_stride, const float* w, int stride, const float* bias,
                    float* y);
bool HasAvx512();

}  // namespace datacom

#endif  // DATACOM_COMMON_NN_MULTIPLY_H_
// SPDX-License-Identifier: Apache-2.0
