// C = op(A) op(B) (+ C), float32, row-major, one thread. libxsmm makes a kernel for every shape when it is first asked
// for; the first such call allocates, later ones do not. Each value is then one chain of fused multiply-adds over k in
// order: the bits are the same for every instruction set and number of rows. Where the system refuses memory for code,
// OpenBLAS computes instead (gemm_blas.cc). m, n, k are the dimensions after op; ld* the row strides in memory.
// Thread-safe.
#ifndef DATACOM_LEARNER_NN_CPU_GEMM_H_
#define DATACOM_LEARNER_NN_CPU_GEMM_H_

#include <string>

namespace datacom::learner {

enum class Gemm { kPlain, kTransposeA, kTransposeB };

void Multiply(Gemm form, int m, int n, int k, const float* a, int lda, const float* b, int ldb, bool add, float* c,
              int ldc);
std::string ProductLibrary();  // what computes products: "libxsmm 1.17 avx512", "OpenBLAS SkylakeX"

// The fallback itself.
void MultiplyByBlas(Gemm form, int m, int n, int k, const float* a, int lda, const float* b, int ldb, bool add,
                    float* c, int ldc);
std::string BlasName();
void UseOneBlasThread();

// Before anything that must not happen twice: where products need OpenBLAS and it chose kernels for another instruction
// set than ChosenInstructionSet(), starts this program again with OPENBLAS_CORETYPE set, which it reads only when it is
// loaded.
void RestartForBlas(char** argv);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_GEMM_H_
