// Optimisers of CpuKernels, their statistics, and the copies that undo a step.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "learner/nn/cpu/cpu_kernels.h"

namespace datacom::learner {
namespace {

// Like Loops::squared_sum, in float64: no square of a float32 overflows.
double WideSquaredSum(const float* x, int n) {
  double total = 0;
  for (int j = 0; j < n; ++j) total += static_cast<double>(x[j]) * x[j];
  return total;
}

template <class T>
void CopyMember(const View<T>& from, const View<T>& to, int member) {
  for (int r = 0; r < from.rows; ++r) std::memcpy(to.row(member, r), from.row(member, r), sizeof(T) * from.cols);
}

template <class T>
void CopyMembers(const View<T>& from, const View<T>& to) {
  for (int m = 0; m < from.members; ++m) CopyMember(from, to, m);
}

template <class T>
void RestoreMembers(const View<T>& from, const DoubleView& active, const View<T>& to) {
  for (int m = 0; m < from.members; ++m) {
    if (active.at(m) == 0) CopyMember(from, to, m);
  }
}

template <class T>
void MeanOfRows(const View<T>& rows, const DoubleView& mean) {
  for (int m = 0; m < rows.members; ++m) {
    double sum = 0;
    for (int r = 0; r < rows.rows; ++r) sum += rows.at(m, r);
    mean.at(m) = sum / rows.rows;
  }
}

}  // namespace

// Calls body(at, count) for ranges of n floats, in any order and at the same time. Each begins at a cache line.
template <class Body>
void CpuKernels::EachLines(int n, const Body& body) {
  constexpr int kLine = 16, kFewest = 512;  // floats; fewer are not worth another thread
  const int lines = n < kFewest ? 0 : n / kLine;
  Ranges(lines, [&](int first, int count) { body(first * kLine, count * kLine); });
  body(lines * kLine, n - lines * kLine);
}

void CpuKernels::Adam(const AdamRange& range) {
  const int n = range.parameters.cols;
  for (int m = 0; m < range.parameters.members; ++m) {
    if (range.active.at(m) == 0) continue;
    const float* gradient = range.gradients.row(m, 0);
    const double step = ++range.steps.at(m);
    const float step_size = static_cast<float>(range.learning_rate.at(m) / (1 - std::pow(0.9, step)));
    const float root = static_cast<float>(1 / std::sqrt(1 - std::pow(0.999, step)));
    float* const parameters = range.parameters.row(m, 0);
    float *const first_moment = range.first_moment.row(m, 0), *const second_moment = range.second_moment.row(m, 0);
    EachLines(n, [&](int at, int count) {
      loops_.adam({gradient + at, parameters + at, first_moment + at, second_moment + at, count, step_size, root});
    });
  }
}

void CpuKernels::Polyak(const FloatView& source, double tau, const DoubleView& active, const FloatView& target) {
  for (int m = 0; m < source.members; ++m) {
    if (active.at(m) == 0) continue;
    const float* const from = source.row(m, 0);
    const float take = static_cast<float>(tau), keep = static_cast<float>(1 - tau);
    float* const to = target.row(m, 0);
    EachLines(source.cols, [&](int at, int count) { loops_.polyak(from + at, take, keep, count, to + at); });
  }
}

void CpuKernels::DeactivateUnlessFinite(const DoubleView& value, const DoubleView& active) {
  for (int m = 0; m < value.members; ++m) {
    if (!std::isfinite(value.at(m))) active.at(m) = 0;
  }
}

void CpuKernels::SetZero(const DoubleView& value) {
  for (int m = 0; m < value.members; ++m) value.at(m) = 0;
}

void CpuKernels::RowMean(const DoubleView& rows, const DoubleView& mean) { MeanOfRows(rows, mean); }

void CpuKernels::RowMean(const FloatView& rows, const DoubleView& mean) { MeanOfRows(rows, mean); }

void CpuKernels::Accumulate(const DoubleView& value, double sign, const DoubleView& active, const DoubleView& sum) {
  for (int m = 0; m < value.members; ++m) {
    if (active.at(m) == 0) continue;
    sum.at(m, 0, 0) += sign * value.at(m);
    sum.at(m, 0, 1) += 1;
  }
}

void CpuKernels::GradientNorm(const FloatView& gradient, const DoubleView& norm, const DoubleView& active) {
  for (int m = 0; m < gradient.members; ++m) {
    double sum = loops_.squared_sum(gradient.row(m, 0), gradient.cols);
    if (!std::isfinite(sum)) sum = WideSquaredSum(gradient.row(m, 0), gradient.cols);
    norm.at(m) = std::sqrt(sum);
    if (!std::isfinite(sum)) active.at(m) = 0;
  }
}

void CpuKernels::AccumulateLeast(const DoubleView& value, const DoubleView& active, const DoubleView& least) {
  for (int m = 0; m < value.members; ++m) {
    if (active.at(m) == 0) continue;
    double& smallest = least.at(m, 0, 0);
    double& count = least.at(m, 0, 1);
    smallest = count == 0 ? value.at(m) : std::min(smallest, value.at(m));
    count += 1;
  }
}

void CpuKernels::Copy(const FloatView& from, const FloatView& to) { CopyMembers(from, to); }
void CpuKernels::Copy(const DoubleView& from, const DoubleView& to) { CopyMembers(from, to); }

void CpuKernels::Restore(const FloatView& from, const DoubleView& active, const FloatView& to) {
  RestoreMembers(from, active, to);
}
void CpuKernels::Restore(const DoubleView& from, const DoubleView& active, const DoubleView& to) {
  RestoreMembers(from, active, to);
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
