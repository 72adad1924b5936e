// The loops of multiply.h for one kind of vector. One source file per instruction set includes this. All names are
// local to that file and nothing else is included, so that no wide instruction gets into code shared with other files.
#ifndef DATACOM_COMMON_NN_MULTIPLY_KERNEL_H_
#define DATACOM_COMMON_NN_MULTIPLY_KERNEL_H_

#ifdef __x86_64__
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif

namespace datacom {
namespace {

#ifdef __x86_64__
struct Narrow {
  using Vector = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kTile = 8;  // sums held in registers at once, to hide the latency of a fused multiply-add
  static Vector Load(const float* from) { return _mm256_loadu_ps(from); }
  static Vector Fill(float value) { return _mm256_set1_ps(value); }
  static Vector Add(Vector a, Vector b, Vector sum) { return _mm256_fmadd_ps(a, b, sum); }
  static void Store(float* to, Vector value) { _mm256_storeu_ps(to, value); }
};
#else
struct Narrow {
  using Vector = float32x4_t;
  static constexpr int kLanes = 4;
  static constexpr int kTile = 16;  // of 32 registers
  static Vector Load(const float* from) { return vld1q_f32(from); }
  static Vector Fill(float value) { return vdupq_n_f32(value); }
  static Vector Add(Vector a, Vector b, Vector sum) { return vfmaq_f32(sum, a, b); }
  static void Store(float* to, Vector value) { vst1q_f32(to, value); }
};
#endif

// The arguments of Multiply.
struct Product {
  int batch, depth;
  const float* x;
  int x_stride;
  const float* w;
  int stride;
  const float* bias;
  float* y;
};

// Computes R rows from `first` on and V vectors from `column` on. Unrolled at every optimisation level, because the
// sums must stay in registers.
template <typename Kind, int R, int V>
void Tile(const Product& p, int first, int column) {
  typename Kind::Vector sum[R][V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    const typename Kind::Vector start =
        p.bias != nullptr ? Kind::Load(p.bias + column + v * Kind::kLanes) : Kind::Fill(0);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[r][v] = start;
  }
  const float* const x = p.x + first * p.x_stride;
  const float* w = p.w + column;
  for (int i = 0; i < p.depth; ++i) {
    typename Kind::Vector row[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) row[v] = Kind::Load(w + v * Kind::kLanes);
    w += p.stride;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const typename Kind::Vector factor = Kind::Fill(x[r * p.x_stride + i]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sum[r][v] = Kind::Add(factor, row[v], sum[r][v]);
    }
  }
  float* const y = p.y + first * p.stride + column;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) Kind::Store(y + r * p.stride + v * Kind::kLanes, sum[r][v]);
  }
}

// Computes all rows from `first` on in blocks of R, then of R / 2, ..., 1.
template <typename Kind, int R, int V>
void Rows(const Product& p, int first, int column) {
  for (; first + R <= p.batch; first += R) Tile<Kind, R, V>(p, first, column);
  if constexpr (R > 1) Rows<Kind, R / 2, V>(p, first, column);
}

// Computes panels of V vectors from `column` on; returns the first column that is left. A panel of w is small enough to
// stay in the L1 cache during all rows.
template <typename Kind, int V>
int Panels(const Product& p, int column) {
  constexpr int kRows = V == 1 ? 8 : Kind::kTile / V;
  for (; column + V * Kind::kLanes <= p.stride; column += V * Kind::kLanes) Rows<Kind, kRows, V>(p, 0, column);
  return column;
}

template <typename Kind>
void MultiplyBy(const Product& p) {
  // With fewer rows the panels are wider, so that there are enough sums.
  int column = p.batch >= 4 ? Panels<Kind, 2>(p, 0) : p.batch >= 2 ? Panels<Kind, 4>(p, 0) : Panels<Kind, 8>(p, 0);
  column = Panels<Kind, 1>(p, column);
  Panels<Narrow, 1>(p, column);
}

}  // namespace
}  // namespace datacom

#endif  // DATACOM_COMMON_NN_MULTIPLY_KERNEL_H_
// SPDX-License-Identifier: Apache-2.0
