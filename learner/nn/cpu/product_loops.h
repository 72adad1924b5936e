// Products of matrices for loops_kernel.h. The sums of up to six rows and sixteen columns stay in registers. The
// sixteen columns of op(B) are first copied side by side: in rows whose distance is a power of two they would share a
// few sets of the cache. The copy also transposes B.
#ifndef DATACOM_LEARNER_NN_CPU_PRODUCT_LOOPS_H_
#define DATACOM_LEARNER_NN_CPU_PRODUCT_LOOPS_H_

#include <cstdint>

#include "learner/nn/cpu/dense_loops.h"
#include "learner/nn/cpu/lanes.h"
#include "learner/nn/cpu/loops.h"

namespace datacom::learner {
namespace {

constexpr int kTileRows = 6;

// Views of matrices of a product. a: entry (i, p) is at a[i row_stride + p inner_stride]; b: [inner, 16 Panels], at
// least; c: of as many columns.
struct Operands {
  const float* a;
  int64_t row_stride, inner_stride;
  const float* b;
  int64_t b_stride;
  float* c;
  int64_t c_stride;
  int inner;
  bool add;
};

// c [Rows, 16 Panels] = (c +) a b.
template <int Rows, int Panels>
[[gnu::always_inline]] inline void MultiplyTile(const Operands& of) {
  Lanes sum[Rows][Panels];
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Panels; ++j) sum[i][j] = of.add ? LoadLanes(of.c + i * of.c_stride + j * kLanes) : FillLanes(0);
  }
  const float* a = of.a;
  const float* b = of.b;
  for (int p = 0; p < of.inner; ++p, a += of.inner_stride, b += of.b_stride) {
    Lanes row[Panels];
#pragma GCC unroll 4
    for (int j = 0; j < Panels; ++j) row[j] = LoadLanes(b + j * kLanes);
#pragma GCC unroll 6
    for (int i = 0; i < Rows; ++i) {
      const Lanes factor = FillLanes(a[i * of.row_stride]);
#pragma GCC unroll 4
      for (int j = 0; j < Panels; ++j) sum[i][j] = FusedLanes(factor, row[j], sum[i][j]);
    }
  }
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Panels; ++j) StoreLanes(of.c + i * of.c_stride + j * kLanes, sum[i][j]);
  }
}

// The same for a number of rows that is known at run time, 1 to Rows, and for `panels` times sixteen columns.
template <int Rows>
void MultiplyRows(int rows, int panels, Operands of) {
  if constexpr (Rows > 1) {
    if (rows < Rows) return MultiplyRows<Rows - 1>(rows, panels, of);
  }
  constexpr int kPanels = Rows == 1 ? 4 : Rows <= 3 ? 2 : 1;  // more sums hide the latency of one
  for (; panels >= kPanels; panels -= kPanels, of.b += kPanels * kLanes, of.c += kPanels * kLanes) {
    MultiplyTile<Rows, kPanels>(of);
  }
  for (; panels > 0; --panels, of.b += kLanes, of.c += kLanes) MultiplyTile<Rows, 1>(of);
}

// to [inner, 16] = columns of op(B), zero from `columns` on.
inline void CopyPanel(Gemm form, const float* b, int64_t ldb, int inner, int columns, float* to) {
  if (form == Gemm::kTransposeB && columns == kLanes) return Transpose(b, ldb, kLanes, inner, to);
  const int64_t row = form == Gemm::kTransposeB ? 1 : ldb, column = form == Gemm::kTransposeB ? ldb : 1;
  for (int p = 0; p < inner; ++p) {
    float* const entry = to + static_cast<int64_t>(p) * kLanes;
    if (columns == kLanes) {
      StoreLanes(entry, LoadLanes(b + p * row));
    } else {
      for (int j = 0; j < kLanes; ++j) entry[j] = j < columns ? b[p * row + j * column] : 0.0f;
    }
  }
}

// Fewer than sixteen columns, by way of a block of sixteen.
inline void MultiplyNarrow(int rows, int columns, Operands of) {
  float block[kTileRows * kLanes] = {};
  float* const c = of.c;
  const int64_t stride = of.c_stride;
  for (int i = 0; of.add && i < rows; ++i) {
    for (int j = 0; j < columns; ++j) block[i * kLanes + j] = c[i * stride + j];
  }
  of.c = block, of.c_stride = kLanes;
  MultiplyRows<kTileRows>(rows, 1, of);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) c[i * stride + j] = block[i * kLanes + j];
  }
}

// Calls `multiply` for each six rows of `of`, and with how many are left for the last.
template <class Multiply>
void ForEachTile(int m, Operands of, const Multiply& multiply) {
  for (int i = 0; i < m; i += kTileRows) {
    multiply(m - i < kTileRows ? m - i : kTileRows, of);
    of.a += kTileRows * of.row_stride, of.c += kTileRows * of.c_stride;
  }
}

void MultiplyMatrices(Gemm form, int m, int n, int k, const float* a, int64_t lda, const float* b, int64_t ldb,
                      bool add, float* c, int64_t ldc, float* panel) {
  constexpr int kCached = 32768;  // numbers of A that stay in the second cache while all panels pass
  const int block = kCached / (k + 1) > 96 ? kCached / (k + 1) : 96;
  for (; m > block; m -= block, a += block * (form == Gemm::kTransposeA ? 1 : lda), c += block * ldc) {
    MultiplyMatrices(form, block, n, k, a, lda, b, ldb, add, c, ldc, panel);
  }
  const bool turn_a = form == Gemm::kTransposeA, turn_b = form == Gemm::kTransposeB;
  Operands of = {a, turn_a ? 1 : lda, turn_a ? lda : 1, b, ldb, c, ldc, k, add};
  int j = 0;
  if (!turn_b &&
      (m <= kTileRows || k <= 32)) {  // a copy pays if many tiles read it and the rows would not stay in the cache
    j = n / kLanes * kLanes;
    ForEachTile(m, of, [j](int rows, const Operands& tile) { MultiplyRows<kTileRows>(rows, j / kLanes, tile); });
  }
  of.b = panel, of.b_stride = kLanes;
  for (; j < n; j += kLanes) {
    const int columns = n - j < kLanes ? n - j : kLanes;
    CopyPanel(form, b + (turn_b ? j * ldb : j), ldb, k, columns, panel);
    of.c = c + j;
    if (columns == kLanes) {
      ForEachTile(m, of, [](int rows, const Operands& tile) { MultiplyRows<kTileRows>(rows, 1, tile); });
    } else {
      ForEachTile(m, of, [columns](int rows, const Operands& tile) { MultiplyNarrow(rows, columns, tile); });
    }
  }
}

}  // namespace
}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_PRODUCT_LOOPS_H_
// SPDX-License-Identifier: Apache-2.0
