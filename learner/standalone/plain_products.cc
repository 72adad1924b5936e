// The products of gemm.h as plain loops, for a machine without libxsmm and OpenBLAS: correct, but slow.
#include <cstdint>

#include "learner/nn/cpu/gemm.h"

namespace datacom::learner {

void Multiply(Gemm form, int m, int n, int k, const float* a, int lda, const float* b, int ldb, bool add, float* c,
              int ldc) {
  const auto at = [](const float* matrix, int stride, int row, int column) {
    return matrix[static_cast<int64_t>(row) * stride + column];
  };
  for (int i = 0; i < m; ++i) {
    float* const row = c + static_cast<int64_t>(i) * ldc;
    for (int j = 0; j < n; ++j) row[j] = add ? row[j] : 0;
    for (int l = 0; l < k; ++l) {
      const float factor = form == Gemm::kTransposeA ? at(a, lda, l, i) : at(a, lda, i, l);
      for (int j = 0; j < n; ++j) row[j] += factor * (form == Gemm::kTransposeB ? at(b, ldb, j, l) : at(b, ldb, l, j));
    }
  }
}

std::string ProductLibrary() { return "plain loops"; }

void UseOneBlasThread() {}

void RestartForBlas(char** /*argv*/) {}

}  // namespace datacom::learner
