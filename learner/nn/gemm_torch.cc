#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "learner/nn/gemm.h"

namespace datacom::learner {
namespace {

at::Tensor Matrix(const float* data, int rows, int cols, int stride) {
  return at::from_blob(const_cast<float*>(data), {rows, cols}, {stride, 1}, at::TensorOptions().dtype(at::kFloat));
}

}  // namespace

void MultiplyByBlas(Gemm form, int m, int n, int k, const float* a, int lda, const float* b, int ldb, bool add,
                    float* c, int ldc) {
  const at::NoGradGuard no_grad;
  const at::Tensor left = form == Gemm::kTransposeA ? Matrix(a, k, m, lda).t() : Matrix(a, m, k, lda);
  const at::Tensor right = form == Gemm::kTransposeB ? Matrix(b, n, k, ldb).t() : Matrix(b, k, n, ldb);
  at::Tensor out = Matrix(c, m, n, ldc);
  out.addmm_(left, right, add ? 1 : 0, 1);
}

std::string BlasName() { return "LibTorch"; }

void UseOneBlasThread() { at::set_num_threads(1); }

void RestartForBlas(char** /*argv*/) {}

}  // namespace datacom::learner
