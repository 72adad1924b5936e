// Products of matrices for loops_kernel.h, by the tiles of common/nn. The columns of op(B) are taken in panels. A panel
// is copied where many tiles read it: in rows whose distance is a power of two it would share a few sets of the cache.
// The copy also transposes B.
#ifndef DATACOM_LEARNER_NN_CPU_PRODUCT_LOOPS_H_
#define DATACOM_LEARNER_NN_CPU_PRODUCT_LOOPS_H_

#include <cstdint>

#include "common/nn/multiply_kernel.h"
#include "learner/nn/cpu/dense_loops.h"
#include "learner/nn/cpu/lanes.h"
#include "learner/nn/cpu/loops.h"

namespace datacom::learner {
namespace {

// A tile has at least twelve vectors of sums, which hides the latency of a multiply-add, and few enough rows that
// loading their factors takes no longer.
#ifdef __AVX512F__
using Widest = Wide;
constexpr int kTileRows = 12, kPanel = 32;
constexpr int kUncopied = 256;  // rows of op(B) that may stay where they are: the second cache is large enough
#else
using Widest = Narrow;
constexpr int kTileRows = 6, kPanel = 16;
constexpr int kUncopied = 32;
#endif

// A function of its own, because GCC spills a vector where several tiles are inlined into one function.
template <int Rows, int Vectors>
[[gnu::noinline]] void OneTile(const Product& p) {
  Tile<Widest, Rows, Vectors>(p);
}

// Computes `rows` rows of `panels` panels of Columns columns, in tiles of Rows rows and one smaller.
template <int Rows, int Columns>
void MultiplyPanels(int rows, int panels, Product p) {
  constexpr int kPanels = Rows == 1 ? 4 : Rows == 2 ? 2 : 1;  // as many sums where rows are few
  constexpr int kVectors = Columns / Widest::kLanes;
  for (; rows >= Rows; rows -= Rows, p.Move(Rows, 0)) {
    Product at = p;
    int left = panels;
    for (; left >= kPanels; left -= kPanels, at.Move(0, kPanels * Columns)) OneTile<Rows, kPanels * kVectors>(at);
    for (; left > 0; --left, at.Move(0, Columns)) OneTile<Rows, kVectors>(at);
  }
  if constexpr (Rows > 1) {
    if (rows > 0) MultiplyPanels<Rows - 1, Columns>(rows, panels, p);
  }
}

// to [inner, width] = columns of op(B), zero from `columns` on.
inline void CopyPanel(Gemm form, const float* b, int64_t ldb, int inner, int columns, int width, float* to) {
  if (form == Gemm::kTransposeB) {
    for (int i = 0; columns < width && i < inner; ++i) StoreLanes(to + i * width, FillLanes(0));
    return Transpose(b, ldb, columns, inner, to, width);
  }
  for (int i = 0; i < inner; ++i, b += ldb, to += width) {
    for (int j = 0; j < width; j += kLanes)
      StoreLanes(to + j, columns < kLanes ? LoadSome(b, columns) : LoadLanes(b + j));
  }
}

// Fewer than sixteen columns, by way of blocks of sixteen.
inline void MultiplyNarrow(int rows, int columns, Product p) {
  for (; rows > 0; rows -= kTileRows, p.Move(kTileRows, 0)) {
    const int some = rows < kTileRows ? rows : kTileRows;
    float block[kTileRows * kLanes];
    Product whole = p;
    whole.c = block, whole.c_stride = kLanes;
    if (p.start != nullptr) {
      for (int i = 0; i < some; ++i) StoreLanes(block + i * kLanes, LoadSome(p.start + i * p.start_stride, columns));
      whole.start = block, whole.start_stride = kLanes;
    }
    MultiplyPanels<kTileRows, kLanes>(some, 1, whole);
    for (int i = 0; i < some; ++i) StoreSome(p.c + i * p.c_stride, columns, LoadLanes(block + i * kLanes));
  }
}

// Multiply of gemm.h for so few rows that op(A) stays in the second cache.
inline void MultiplyBlock(Gemm form, int m, int n, int k, const float* a, int64_t lda, const float* b, int64_t ldb,
                          bool add, float* c, int64_t ldc, float* panel) {
  const bool turn_a = form == Gemm::kTransposeA, turn_b = form == Gemm::kTransposeB;
  Product p = {a, turn_a ? 1 : lda, turn_a ? lda : 1, k, b, ldb, add ? c : nullptr, ldc, c, ldc};
  int j = 0;
  // A copy pays if many tiles read it and the rows would not stay in the caches.
  if (!turn_b && (m <= kTileRows || k <= kUncopied)) {
    const int panels = n / kPanel, together = m <= kTileRows ? panels : 1;
    for (; j < panels * kPanel; j += together * kPanel, p.Move(0, together * kPanel)) {
      MultiplyPanels<kTileRows, kPanel>(m, together, p);
    }
  }
  for (int columns; j < n; j += columns, p.Move(0, columns)) {
    columns = n - j >= kPanel ? kPanel : n - j < kLanes ? n - j : kLanes;
    Product copied = p;
    copied.b = panel, copied.b_stride = columns < kLanes ? kLanes : columns;
    CopyPanel(form, b + (turn_b ? j * ldb : j), ldb, k, columns, copied.b_stride, panel);
    if (columns == kPanel) {
      MultiplyPanels<kTileRows, kPanel>(m, 1, copied);
    } else if (columns == kLanes) {
      MultiplyPanels<kTileRows, kLanes>(m, 1, copied);
    } else {
      MultiplyNarrow(m, columns, copied);
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
