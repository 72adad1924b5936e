// C = op(A) op(B) (+ C), float32, row-major, one thread. libxsmm, where the build found it, makes a kernel for every
// shape when it is first asked for; the first such call allocates, later ones do not. Each value is then one chain of
// fused multiply-adds over k in order: the bits are the same for every instruction set and number of rows. Where
// libxsmm is missing or the system refuses memory for code, a BLAS computes instead: OpenBLAS (gemm_blas.cc) or, on a
// machine with LibTorch alone, the one inside LibTorch (gemm_torch.cc). m, n, k are the dimensions after op; ld* the
// row strides in memory. Thread-safe.
#ifndef DATACOM_LEARNER_NN_GEMM_H_
#define DATACOM_LEARNER_NN_GEMM_H_

#include <string>

namespace datacom::learner {

enum class Gemm { kPlain, kTransposeA, kTransposeB };

void Multiply(Gemm form, int m, int n, int k, const float* a, int lda, const float* b, int ldb, bool add, float* c,
              int ldc);
std::string ProductLibrary();  // what computes products: "libxsmm 1.17 avx512", "OpenBLAS SkylakeX", "LibTorch"

// The fallback itself.
void MultiplyByBlas(Gemm form, int m, int n, int k, const float* a, int lda, const float* b, int ldb, bool add,
                    float* c, int ldc);
std::string BlasName();
void UseOneBlasThread();

// First in main: where products need OpenBLAS and it chose kernels for another instruction set than
// ChosenInstructionSet(), starts this program again with OPENBLAS_CORETYPE set, which it reads only when it is loaded.
void RestartForBlas(char** argv);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_GEMM_H_
