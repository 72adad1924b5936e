#include <cblas.h>

#include "learner/nn/gemm.h"

namespace datacom::learner {

void Multiply(Gemm form, int m, int n, int k, const float* a, int lda, const float* b, int ldb, bool add, float* c,
              int ldc) {
  cblas_sgemm(CblasRowMajor, form == Gemm::kTransposeA ? CblasTrans : CblasNoTrans,
              form == Gemm::kTransposeB ? CblasTrans : CblasNoTrans, m, n, k, 1, a, lda, b, ldb, add ? 1.0f : 0.0f, c,
              ldc);
}

void UseOneBlasThread() { openblas_set_num_threads(1); }

}  // namespace datacom::learner
