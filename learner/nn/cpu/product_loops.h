// Products of matrices for loops_kernel.h, by the tiles of common/nn. Sixteen columns of op(B) are copied side by side:
// in rows whose distance is a power of two they would share a few sets of the cache. The copy also transposes B.
#ifndef DATACOM_LEARNER_NN_CPU_PRODUCT_LOOPS_H_
#define DATACOM_LEARNER_NN_CPU_PRODUCT_LOOPS_H_

#include <cstdint>

#include "common/nn/multiply_kernel.h"
#include "learner/nn/cpu/dense_loops.h"
#include "learner/nn/cpu/lanes.h"
#include "learner/nn/cpu/loops.h"

namespace datacom::learner {
namespace {

// A tile has at least twelve vectors of sums, which hides the latency of a multiply-add.
#ifdef __AVX512F__
using Widest = Wide;
constexpr int kTileRows = 12;
#else
using Widest = Narrow;
constexpr int kTileRows = 6;
#endif

// Computes `rows` rows of 16 `panels` columns, in tiles of Rows rows and one smaller.
template <int Rows>
void MultiplyPanels(int rows, int panels, Product p) {
  constexpr int kPanels = Rows == 1 ? 4 : Rows == 2 ? 2 : 1;  // as many sums where rows are few
  constexpr int kVectors = kLanes / Widest::kLanes;
  for (; rows >= Rows; rows -= Rows, p.Move(Rows, 0)) {
    Product at = p;
    int left = panels;
    for (; left >= kPanels; left -= kPanels, at.Move(0, kPanels * kLanes)) Tile<Widest, Rows, kPanels * kVectors>(at);
    for (; left > 0; --left, at.Move(0, kLanes)) Tile<Widest, Rows, kVectors>(at);
  }
  if constexpr (Rows > 1) {
    if (rows > 0) MultiplyPanels<Rows - 1>(rows, panels, p);
  }
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

// Fewer than sixteen columns, by way of blocks of sixteen.
inline void MultiplyNarrow(int rows, int columns, Product p) {
  for (; rows > 0; rows -= kTileRows, p.Move(kTileRows, 0)) {
    const int some = rows < kTileRows ? rows : kTileRows;
    float block[kTileRows * kLanes] = {};
    Product whole = p;
    whole.c = block, whole.c_stride = kLanes;
    if (p.start != nullptr) {
      for (int i = 0; i < some; ++i) {
        for (int j = 0; j < columns; ++j) block[i * kLanes + j] = p.start[i * p.start_stride + j];
      }
      whole.start = block, whole.start_stride = kLanes;
    }
    MultiplyPanels<kTileRows>(some, 1, whole);
    for (int i = 0; i < some; ++i) {
      for (int j = 0; j < columns; ++j) p.c[i * p.c_stride + j] = block[i * kLanes + j];
    }
  }
}

// Multiply of gemm.h for so few rows that op(A) stays in the second cache.
inline void MultiplyBlock(Gemm form, int m, int n, int k, const float* a, int64_t lda, const float* b, int64_t ldb,
                          bool add, float* c, int64_t ldc, float* panel) {
  const bool turn_a = form == Gemm::kTransposeA, turn_b = form == Gemm::kTransposeB;
  Product p = {a, turn_a ? 1 : lda, turn_a ? lda : 1, k, b, ldb, add ? c : nullptr, ldc, c, ldc};
  int j = 0;
  // A copy pays if many tiles read it and the rows would not stay in the first cache.
  if (!turn_b && (m <= kTileRows || k <= 32)) {
    j = n / kLanes * kLanes;
    MultiplyPanels<kTileRows>(m, j / kLanes, p);
    p.Move(0, j);
  }
  p.b_stride = kLanes;
  for (; j < n; j += kLanes, p.Move(0, kLanes)) {
    const int columns = n - j < kLanes ? n - j : kLanes;
    CopyPanel(form, b + (turn_b ? j * ldb : j), ldb, k, columns, panel);
    p.b = panel;
    if (columns == kLanes) {
      MultiplyPanels<kTileRows>(m, 1, p);
    } else {
      MultiplyNarrow(m, columns, p);
    }
  }
}

void MultiplyMatrices(Gemm form, int m, int n, int k, const float* a, int64_t lda, const float* b, int64_t ldb,
                      bool add, float* c, int64_t ldc, float* panel) {
  constexpr int kCached = 32768;  // numbers of op(A) that stay in the second cache
  constexpr int kFewest = 96;     // with fewer rows copying op(B) again would take too long
  const int block = static_cast<int64_t>(kFewest) * k < kCached ? kCached / (k < 1 ? 1 : k) : kFewest;
  for (; m > 0; m -= block, a += block * (form == Gemm::kTransposeA ? 1 : lda), c += block * ldc) {
    MultiplyBlock(form, m < block ? m : block, n, k, a, lda, b, ldb, add, c, ldc, panel);
  }
}

}  // namespace
}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_PRODUCT_LOOPS_H_
// SPDX-License-Identifier: Apache-2.0
