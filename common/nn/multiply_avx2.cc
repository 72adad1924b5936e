#include "common/nn/multiply.h"
#include "common/nn/multiply_kernel.h"

namespace datacom {

void MultiplyAvx2(int batch, int depth, const float* x, int x_stride, const float* w, int stride, const float* bias,
                  float* y) {
  MultiplyBy<Narrow>(batch, stride, {x, x_stride, 1, depth, w, stride, bias, 0, y, stride});
}

bool HasAvx512() {
#ifdef __x86_64__
  static const bool has = __builtin_cpu_supports("avx512f");
  return has;
#else
  return false;
#endif
}

void Multiply(int batch, int depth, const float* x, int x_stride, const float* w, int stride, const float* bias,
              float* y) {
  (HasAvx512() ? MultiplyAvx512 : MultiplyAvx2)(batch, depth, x, x_stride, w, stride, bias, y);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
