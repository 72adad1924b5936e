// Tiles of products of matrices for one kind of vector, and the loops of multiply.h. One source file per instruction
// set includes this. All names are local to that file and only <cstdint> is included, so that no wide instruction gets
// into code shared with other files.
#ifndef DATACOM_COMMON_NN_MULTIPLY_KERNEL_H_
#define DATACOM_COMMON_NN_MULTIPLY_KERNEL_H_

#include <cstdint>

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

#ifdef __AVX512F__
struct Wide {
  using Vector = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kTile = 16;
  static Vector Load(const float* from) { return _mm512_loadu_ps(from); }
  static Vector Fill(float value) { return _mm512_set1_ps(value); }
  static Vector Add(Vector a, Vector b, Vector sum) { return _mm512_fmadd_ps(a, b, sum); }
  static void Store(float* to, Vector value) { _mm512_storeu_ps(to, value); }
};
#endif

// c = start + a b. Entry (r, i) of a is at a[r row_stride + i inner_stride]; the other matrices are row-major. start
// may be null (0), c, or one row for all (start_stride 0).
struct Product {
  const float* a;
  int64_t row_stride, inner_stride;
  int inner;
  const float* b;
  int64_t b_stride;
  const float* start;
  int64_t start_stride;
  float* c;
  int64_t c_stride;

  // The same product for the rest of c, from a row and a column on.
  void Move(int rows, int columns) {
    a += rows * row_stride;
    b += columns;
    if (start != nullptr) start += rows * start_stride + columns;
    c += rows * c_stride + columns;
  }
};

// Adds to sum the product of a column, whose entries `column` gives, and the row of V vectors at b. Unrolled.
template <typename Kind, int R, int V, typename Column>
[[gnu::always_inline]] inline void AddRow(const float* b, Column column, typename Kind::Vector (&sum)[R][V]) {
  typename Kind::Vector row[V];
#pragma GCC unroll 16
  for (int v = 0; v < V; ++v) row[v] = Kind::Load(b + v * Kind::kLanes);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const typename Kind::Vector factor = Kind::Fill(column(r));
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) sum[r][v] = Kind::Add(factor, row[v], sum[r][v]);
  }
}

// Computes R rows of V vectors. Unrolled at every optimisation level, because the sums must stay in registers.
template <typename Kind, int R, int V>
[[gnu::always_inline]] inline void Tile(const Product& p) {
  typename Kind::Vector sum[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      sum[r][v] = p.start == nullptr ? Kind::Fill(0) : Kind::Load(p.start + r * p.start_stride + v * Kind::kLanes);
    }
  }
  const float* b = p.b;
  if constexpr (R <= 8) {
    const float* a = p.a;
    for (int i = 0; i < p.inner; ++i, a += p.inner_stride, b += p.b_stride) {
      AddRow<Kind>(
          b, [a, &p](int r) { return a[r * p.row_stride]; }, sum);
    }
  } else {
    // The offsets of all rows would not fit into the registers. So each four rows have a pointer, and the empty asm
    // keeps the compiler from turning the pointers into offsets.
    const float* a[(R + 3) / 4];
#pragma GCC unroll 16
    for (int r = 0; r < R; r += 4) a[r / 4] = p.a + r * p.row_stride;
    for (int i = 0; i < p.inner; ++i, b += p.b_stride) {
      AddRow<Kind>(
          b, [&a, &p](int r) { return a[r / 4][r % 4 * p.row_stride]; }, sum);
#pragma GCC unroll 16
      for (const float*& four : a) {
        four += p.inner_stride;
        asm("" : "+r"(four));
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) Kind::Store(p.c + r * p.c_stride + v * Kind::kLanes, sum[r][v]);
  }
}

// Computes `rows` rows in tiles of R, and the rest in one smaller tile.
template <typename Kind, int R, int V>
void Rows(int rows, Product p) {
  for (; rows >= R; rows -= R, p.Move(R, 0)) Tile<Kind, R, V>(p);
  if constexpr (R > 1) {
    if (rows > 0) Rows<Kind, R - 1, V>(rows, p);
  }
}

// Computes panels of V vectors; returns the number of columns that are left. A panel of b is small enough to stay in
// the L1 cache during all rows.
template <typename Kind, int V>
int Panels(int rows, int columns, Product* p) {
  constexpr int kRows = V == 1 ? 8 : Kind::kTile / V;
  for (; columns >= V * Kind::kLanes; columns -= V * Kind::kLanes, p->Move(0, V * Kind::kLanes)) {
    Rows<Kind, kRows, V>(rows, *p);
  }
  return columns;
}

// Computes `rows` rows of `columns` columns, a multiple of eight. With fewer rows the panels are wider, so that there
// are enough sums.
template <typename Kind>
void MultiplyBy(int rows, int columns, Product p) {
  columns = rows >= 4   ? Panels<Kind, 2>(rows, columns, &p)
            : rows >= 2 ? Panels<Kind, 4>(rows, columns, &p)
                        : Panels<Kind, 8>(rows, columns, &p);
  columns = Panels<Kind, 1>(rows, columns, &p);
  Panels<Narrow, 1>(rows, columns, &p);
}

}  // namespace
}  // namespace datacom

#endif  // DATACOM_COMMON_NN_MULTIPLY_KERNEL_H_
// SPDX-License-Identifier: Apache-2.0
