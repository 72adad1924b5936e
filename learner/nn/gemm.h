// C = op(A) op(B) (+ C), float32, row-major, one thread: the BLAS the build found (gemm_blas.cc), or, on a machine with
// LibTorch alone, the one inside LibTorch (gemm_torch.cc). m, n, k are the dimensions after op; ld* the row strides in
// memory.
#ifndef DATACOM_LEARNER_NN_GEMM_H_
#define DATACOM_LEARNER_NN_GEMM_H_

namespace datacom::learner {

enum class Gemm { kPlain, kTransposeA, kTransposeB };

void Multiply(Gemm form, int m, int n, int k, const float* a, int lda, const float* b, int ldb, bool add, float* c,
              int ldc);
void UseOneBlasThread();

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_GEMM_H_
