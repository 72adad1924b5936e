// The only file compiled for AVX-512 (CMakeLists.txt): include nothing here that other files share.
#include "common/nn/multiply.h"
#include "common/nn/multiply_kernel.h"

namespace datacom {
namespace {

#ifdef __x86_64__
struct Wide {
  using Vector = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kTile = 16;
  static Vector Load(const float* from) { return _mm512_loadu_ps(from); }
  static Vector Fill(float value) { return _mm512_set1_ps(value); }
  static Vector Add(Vector a, Vector b, Vector sum) { return _mm512_fmadd_ps(a, b, sum); }
  static void Store(float* to, Vector value) { _mm512_storeu_ps(to, value); }
};
#else
using Wide = Narrow;  // never called
#endif

}  // namespace

void MultiplyAvx512(int batch, int depth, const float* x, int x_stride, const float* w, int stride, const float* bias,
                    float* y) {
  MultiplyBy<Wide>({batch, depth, x, x_stride, w, stride, bias, y});
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
