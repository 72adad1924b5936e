#include <cblas.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "learner/nn/cpu/gemm.h"
#include "learner/nn/cpu/instruction_set.h"

namespace datacom::learner {

void MultiplyByBlas(Gemm form, int m, int n, int k, const float* a, int lda, const float* b, int ldb, bool add,
                    float* c, int ldc) {
  cblas_sgemm(CblasRowMajor, form == Gemm::kTransposeA ? CblasTrans : CblasNoTrans,
              form == Gemm::kTransposeB ? CblasTrans : CblasNoTrans, m, n, k, 1, a, lda, b, ldb, add ? 1.0f : 0.0f, c,
              ldc);
}

std::string BlasName() { return std::string("OpenBLAS ") + openblas_get_corename(); }

void UseOneBlasThread() { openblas_set_num_threads(1); }

void RestartForBlas(char** argv) {
  if (ProductLibrary() != BlasName() || std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
  const bool wide = ChosenInstructionSet() == InstructionSet::kAvx512;
  const char* const core = openblas_get_corename();
  const bool is_wide = std::strcmp(core, "SkylakeX") == 0 || std::strcmp(core, "Cooperlake") == 0;
  if (wide == is_wide) return;
  setenv("OPENBLAS_CORETYPE", wide ? "SkylakeX" : "Haswell", /*overwrite=*/1);
  execv("/proc/self/exe", argv);  // returns only if it fails; then OpenBLAS keeps its own choice
}

}  // namespace datacom::learner
