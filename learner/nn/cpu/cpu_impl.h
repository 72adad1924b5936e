// The base of the CPU's implementations of kernel groups (kernels.h). They are built with the compiler options of
// element-wise loops (learner/core_sources.cmake).
#ifndef DATACOM_LEARNER_NN_CPU_CPU_IMPL_H_
#define DATACOM_LEARNER_NN_CPU_CPU_IMPL_H_

#include <cmath>
#include <cstddef>
#include <vector>

#include "learner/nn/cpu/loops.h"
#include "learner/nn/kernel_impls.h"

namespace datacom::learner {

using CpuImpls = KernelImpls<>;

template <class Group>
class CpuImpl : public Group {
 protected:
  // Memory of this thread for one member's rows of the shape of `like`, shared by all members; valid until the thread's
  // next call with this slot. Grows on demand.
  static FloatView Temporary(int slot, const FloatView& like) {
    thread_local std::vector<float> temporaries[3];
    std::vector<float>& memory = temporaries[slot];
    const size_t size = static_cast<size_t>(like.rows) * like.cols;
    if (memory.size() < size) memory.resize(size);
    return {memory.data(), like.members, like.rows, like.cols, /*member_stride=*/0, like.cols};
  }

  const Loops& loops_ = ChosenLoops();
};

// y = f(x) for the rows of one member; f is an element-wise function of Loops.
inline void Apply(void (*f)(int n, const float* x, float* y), const FloatView& x, const FloatView& y, int member) {
  const bool dense = x.row_stride == x.cols && y.row_stride == y.cols;
  const int calls = dense ? 1 : x.rows, n = dense ? x.rows * x.cols : x.cols;
  for (int r = 0; r < calls; ++r) f(n, x.row(member, r), y.row(member, r));
}

// The first rows of weight [members, rows, 1] that are not 0.
inline int RowsThatCount(const FloatView& weight, int member) {
  int rows = 0;
  while (rows < weight.rows && weight.at(member, rows) > 0) ++rows;
  return rows;
}

// Functions of single numbers. NaN stays NaN. Local to the translation unit, because units have different options.
namespace {

inline float Clamp(float x, float low, float high) { return x < low ? low : (x > high ? high : x); }
inline float NonNegative(float x) { return x < 0 ? 0 : x; }
inline float Softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }
inline float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
inline float SoftplusSlope(float x) { return x > 20 ? 1.0f : Sigmoid(x); }

// body(row, column) for each number of one member, row by row.
template <class Body>
inline void EachNumber(const FloatView& like, const Body& body) {
  for (int r = 0; r < like.rows; ++r) {
    for (int i = 0; i < like.cols; ++i) body(r, i);
  }
}

}  // namespace
}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_CPU_CPU_IMPL_H_
// SPDX-License-Identifier: Apache-2.0
