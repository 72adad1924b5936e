// C = op(A) op(B) (+ C), float32, row-major, one thread. With AVX-512 libxsmm generates a kernel for each shape at its
// first call. With AVX2, on ARM and where the system refuses memory for code, our loops compute (product_loops.h). Each
// value is one chain of fused multiply-adds over k in order, so the bits are the same in all of these cases and for any
// number of rows. m, n, k are the dimensions after op, ld* the row strides in memory. Memory of the thread grows with
// the largest product. Thread-safe.
#ifndef DATACOM_LEARNER_NN_CPU_GEMM_H_
#define DATACOM_LEARNER_NN_CPU_GEMM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "learner/nn/cpu/loops.h"

namespace datacom::learner {

void Multiply(Gemm form, int m, int n, int k, const float* a, int64_t lda, const float* b, int64_t ldb, bool add,
              float* c, int64_t ldc);
// The same without libxsmm.
void MultiplyByLoops(Gemm form, int m, int n, int k, const float* a, int64_t lda, const float* b, int64_t ldb, bool add,
                     float* c, int64_t ldc);
// For benchmarks: from now on this thread's calls of Multiply are also noted in `to`, until it is null.
struct Product {
  Gemm form;
  int m, n, k;
};
void NoteProducts(std::vector<Product>* to);
std::string ProductLibrary();  // such as "libxsmm 1.17 avx512", or "loops"

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_GEMM_H_
// SPDX-License-Identifier: Apache-2.0
