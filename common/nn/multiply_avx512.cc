// The only file compiled for AVX-512 (CMakeLists.txt): include nothing here that other files share.
#include "common/nn/multiply.h"
#include "common/nn/multiply_kernel.h"

namespace datacom {
#ifndef __x86_64__
using Wide = Narrow;  // never called
#endif

void MultiplyAvx512(int batch, int depth, const float* x, int x_stride, const float* w, int stride, const float* bias,
                    float* y) {
  MultiplyBy<Wide>(batch, stride, {x, x_stride, 1, depth, w, stride, bias, 0, y, stride});
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
