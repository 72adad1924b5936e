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

#ifdef __AVX512F__
template <int Rows, int Vectors>
[[gnu::noinline]] void OneTile(const Product& p) {  // several in one function make GCC keep vectors in memory
  Tile<Widest, Rows, Vectors>(p);
}
#else
template <int Rows, int Vectors>
[[gnu::always_inline]] inline void OneTile(const Product& p) {
  Tile<Widest, Rows, Vectors>(p);
}
#endif

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

// to [inner, Columns] = columns of op(B).
template <int Columns>
void CopyPanel(Gemm form, const float* b, int64_t ldb, int inner, float* to) {
  if (form == Gemm::kTransposeB) return Transpose(b, ldb, Columns, inner, to, Columns);
  for (int i = 0; i < inner; ++i, b += ldb, to += Columns) {
    for (int j = 0; j < Columns; j += kLanes) StoreLanes(to + j, LoadLanes(b + j));
  }
}

// to [inner, 16] = fewer columns of op(B), and zeros.
inline void CopyNarrow(Gemm form, const float* b, int64_t ldb, int inner, int columns, float* to) {
  const bool turn = form == Gemm::kTransposeB;
  for (int i = 0; i < inner; ++i) StoreLanes(to + i * kLanes, turn ? FillLanes(0) : LoadSome(b + i * ldb, columns));
  if (turn) Transpose(b, ldb, columns, inner, to, kLanes);
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
  const auto from = [=](int column) { return b + (turn_b ? column * ldb : column); };
  p.b = panel, p.b_stride = kPanel;
  for (; j <= n - kPanel; j += kPanel, p.Move(0, kPanel), p.b = panel) {
    CopyPanel<kPanel>(form, from(j), ldb, k, panel);
    MultiplyPanels<kTileRows, kPanel>(m, 1, p);
  }
  p.b_stride = kLanes;
  for (; j <= n - kLanes; j += kLanes, p.Move(0, kLanes), p.b = panel) {
    CopyPanel<kLanes>(form, from(j), ldb, k, panel);
    MultiplyPanels<kTileRows, kLanes>(m, 1, p);
  }
  if (j < n) {
    CopyNarrow(form, from(j), ldb, k, n - j, panel);
    MultiplyNarrow(m, n - j, p);
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
