// C = op(A) op(B) (+ C), float32, row-major, one thread, by the loops for this processor (product_loops.h). Each value
// is one chain of fused multiply-adds over k in order, so the bits are the same for all processors and any number of
// rows. m, n, k are the dimensions after op, ld* the row strides in memory. Memory of the thread grows with the largest
// k. Thread-safe.
#ifndef DATACOM_LEARNER_NN_CPU_GEMM_H_
#define DATACOM_LEARNER_NN_CPU_GEMM_H_

#include <cstdint>
#include <vector>

#include "learner/nn/cpu/loops.h"

namespace datacom::learner {

void Multiply(Gemm form, int m, int n, int k, const float* a, int64_t lda, const float* b, int64_t ldb, bool add,
              float* c, int64_t ldc);
// For benchmarks: from now on this thread's calls of Multiply are also noted in `to`, until it is null.
struct Product {
  Gemm form;
  int m, n, k;
};
void NoteProducts(std::vector<Product>* to);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_GEMM_H_
// SPDX-License-Identifier: Apache-2.0
