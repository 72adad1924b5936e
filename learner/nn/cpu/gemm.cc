#include "learner/nn/cpu/gemm.h"

#include <libxsmm.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "learner/nn/cpu/instruction_set.h"
#include "learner/nn/cpu/loops.h"

namespace datacom::learner {

namespace {

// libxsmm's kernel for column-major matrices, the transposes of ours: C^T [n, m] = op(B)^T op(A)^T. Null if it has
// none.
libxsmm_smmfunction Kernel(Gemm form, int m, int n, int k, int lda, int ldb, bool add, int ldc) {
  const float alpha = 1, beta = add ? 1.0f : 0.0f;
  const int flags = form == Gemm::kTransposeA ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  return libxsmm_smmdispatch(n, m, k, &ldb, &lda, &ldc, &alpha, &beta, &flags, /*prefetch=*/nullptr);
}

// Whether written memory may become executable. A hardened system refuses, and libxsmm 1.17 crashes there.
bool MayMakeCode() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  const bool may = mprotect(memory, page, PROT_READ | PROT_EXEC) == 0;
  munmap(memory, page);
  return may;
}

// Whether libxsmm can generate kernels here. Selects them by instruction set, not by processor model, so that they are
// the same on every processor.
bool UseKernels() {
  if (!MayMakeCode()) return false;
  libxsmm_init();
  libxsmm_set_target_archid(ChosenInstructionSet() == InstructionSet::kAvx512 ? LIBXSMM_X86_AVX512_CORE
                                                                              : LIBXSMM_X86_AVX2);
  return Kernel(Gemm::kPlain, 16, 16, 16, 16, 16, /*add=*/false, 16) != nullptr;
}

bool HasKernels() {
  static const bool has = UseKernels();
  return has;
}

// b [n, k] transposed to [k, n], because libxsmm has no kernel for the transposed operand. Valid until the thread's
// next call.
const float* Transposed(const float* b, int n, int k, int ldb) {
  thread_local std::vector<float> memory;
  const size_t size = static_cast<size_t>(n) * k;
  if (memory.size() < size) memory.resize(size);
  ChosenLoops().transpose(b, ldb, n, k, memory.data());
  return memory.data();
}

}  // namespace

void Multiply(Gemm form, int m, int n, int k, const float* a, int lda, const float* b, int ldb, bool add, float* c,
              int ldc) {
  const bool transposed = form == Gemm::kTransposeB;
  const libxsmm_smmfunction kernel =
      HasKernels() ? Kernel(transposed ? Gemm::kPlain : form, m, n, k, lda, transposed ? n : ldb, add, ldc) : nullptr;
  if (kernel == nullptr) return MultiplyByBlas(form, m, n, k, a, lda, b, ldb, add, c, ldc);
  kernel(transposed ? Transposed(b, n, k, ldb) : b, a, c);
}

std::string ProductLibrary() {
  return HasKernels() ? "libxsmm " + std::to_string(LIBXSMM_VERSION_MAJOR) + "." +
                            std::to_string(LIBXSMM_VERSION_MINOR) + " " + NameOf(ChosenInstructionSet())
                      : BlasName();
}

}  // namespace datacom::learner
