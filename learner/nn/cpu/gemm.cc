#include "learner/nn/cpu/gemm.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "learner/nn/cpu/loops.h"

namespace datacom::learner {
namespace {
thread_local std::vector<Product>* noted = nullptr;
}  // namespace

void Multiply(Gemm form, int m, int n, int k, const float* a, int64_t lda, const float* b, int64_t ldb, bool add,
              float* c, int64_t ldc) {
  if (noted != nullptr) noted->push_back({form, m, n, k});
  struct alignas(64) Line {
    float values[2 * 16];
  };
  thread_local std::vector<Line> panel;
  if (panel.size() < static_cast<size_t>(k)) panel.resize(k);
  ChosenLoops().multiply(form, m, n, k, a, lda, b, ldb, add, c, ldc, reinterpret_cast<float*>(panel.data()));
}

void NoteProducts(std::vector<Product>* to) { noted = to; }

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
