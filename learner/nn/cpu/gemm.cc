#include "learner/nn/cpu/gemm.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "learner/nn/cpu/instruction_set.h"
#include "learner/nn/cpu/loops.h"

#ifdef __x86_64__  // libxsmm is for no other processor
#include <libxsmm.h>

// The names that libxsmm's copy has for functions of a BLAS (learner/core.cmake).
extern "C" {
void datacom_no_sgemm() { std::abort(); }
void datacom_no_dgemm() { std::abort(); }
void datacom_no_sgemv() { std::abort(); }
void datacom_no_dgemv() { std::abort(); }
}
#endif

namespace datacom::learner {
namespace {

thread_local std::vector<Product>* noted = nullptr;

#ifdef __x86_64__
// libxsmm's kernel for column-major matrices, the transposes of ours: C^T [n, m] = op(B)^T op(A)^T. Null if it has
// none.
libxsmm_smmfunction Kernel(Gemm form, int m, int n, int k, int64_t a_stride, int64_t b_stride, bool add,
                           int64_t c_stride) {
  const int lda = static_cast<int>(a_stride), ldb = static_cast<int>(b_stride), ldc = static_cast<int>(c_stride);
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

// Whether libxsmm generates the kernels: for AVX-512, where the system allows it.
bool UseKernels() {
  if (ChosenInstructionSet() != InstructionSet::kAvx512 || !MayMakeCode()) return false;
  libxsmm_init();
  libxsmm_set_target_archid(LIBXSMM_X86_AVX512_CORE);
  return Kernel(Gemm::kPlain, 16, 16, 16, 16, 16, /*add=*/false, 16) != nullptr;
}

bool HasKernels() {
  static const bool has = UseKernels();
  return has;
}

// b [n, k] transposed to [k, n], because no kernel takes the transposed operand. Valid until the thread's next call.
const float* Transposed(const float* b, int n, int k, int64_t ldb) {
  thread_local std::vector<float> memory;
  const size_t size = static_cast<size_t>(n) * k;
  if (memory.size() < size) memory.resize(size);
  ChosenLoops().transpose(b, ldb, n, k, memory.data());
  return memory.data();
}
#endif

}  // namespace

void Multiply(Gemm form, int m, int n, int k, const float* a, int64_t lda, const float* b, int64_t ldb, bool add,
              float* c, int64_t ldc) {
  if (noted != nullptr) noted->push_back({form, m, n, k});
#ifdef __x86_64__
  const bool transposed = form == Gemm::kTransposeB;
  const libxsmm_smmfunction kernel =
      HasKernels() ? Kernel(transposed ? Gemm::kPlain : form, m, n, k, lda, transposed ? n : ldb, add, ldc) : nullptr;
  if (kernel != nullptr) return kernel(transposed ? Transposed(b, n, k, ldb) : b, a, c);
#endif
  MultiplyByLoops(form, m, n, k, a, lda, b, ldb, add, c, ldc);
}

void MultiplyByLoops(Gemm form, int m, int n, int k, const float* a, int64_t lda, const float* b, int64_t ldb, bool add,
                     float* c, int64_t ldc) {
  struct alignas(64) Line {
    float values[16];
  };
  thread_local std::vector<Line> panel;
  if (panel.size() < static_cast<size_t>(k)) panel.resize(k);
  ChosenLoops().multiply(form, m, n, k, a, lda, b, ldb, add, c, ldc, reinterpret_cast<float*>(panel.data()));
}

void NoteProducts(std::vector<Product>* to) { noted = to; }

std::string ProductLibrary() {
#ifdef __x86_64__
  if (HasKernels()) {
    return "libxsmm " + std::to_string(LIBXSMM_VERSION_MAJOR) + "." + std::to_string(LIBXSMM_VERSION_MINOR) + " " +
           NameOf(ChosenInstructionSet());
  }
#endif
  return "loops";
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
