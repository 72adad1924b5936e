// What FusedKernels watches in an update, and how it undoes a part of one.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "learner/nn/fused_kernels.h"

namespace datacom::learner {
namespace {

// As Loops::squared_sum; no square of a float32 overflows.
double WideSquaredSum(const float* x, int n) {
  double total = 0;
  for (int j = 0; j < n; ++j) total += static_cast<double>(x[j]) * x[j];
  return total;
}

template <class T>
void CopyMember(const View<T>& from, const View<T>& to, int member) {
  for (int r = 0; r < from.rows; ++r) std::memcpy(to.row(member, r), from.row(member, r), sizeof(T) * from.cols);
}

// No early end: this vectorises, and entries are nearly always calm.
template <class T>
void FindCalm(const View<T>& x, double limit, const DoubleView& calm) {
  const T bound = static_cast<T>(limit);
  for (int m = 0; m < x.members; ++m) {
    int beyond = 0;
    for (int r = 0; r < x.rows; ++r) {
      const T* row = x.row(m, r);
      for (int c = 0; c < x.cols; ++c) beyond += !(std::abs(row[c]) <= bound);
    }
    if (beyond > 0) calm.at(m) = 0;
  }
}

template <class T>
void CopyThoseNotCalm(const View<T>& from, const DoubleView& calm, const View<T>& to) {
  for (int m = 0; m < from.members; ++m) {
    if (calm.at(m) == 0) CopyMember(from, to, m);
  }
}

template <class T>
void PutThoseBack(const View<T>& from, const DoubleView& active, const DoubleView& calm, const View<T>& to) {
  for (int m = 0; m < from.members; ++m) {
    if (active.at(m) == 0 && calm.at(m) == 0) CopyMember(from, to, m);
  }
}

}  // namespace

void FusedKernels::GradientNorm(const FloatView& gradient, const DoubleView& norm, const DoubleView& active) {
  for (int m = 0; m < gradient.members; ++m) {
    double sum = loops_.squared_sum(gradient.row(m, 0), gradient.cols);
    if (!std::isfinite(sum)) sum = WideSquaredSum(gradient.row(m, 0), gradient.cols);
    norm.at(m) = std::sqrt(sum);
    if (!std::isfinite(sum)) active.at(m) = 0;
  }
}

void FusedKernels::CriticValues(const FloatView& q0, const FloatView& q1, const DoubleView& mean,
                                const DoubleView& least, const DoubleView& gap) {
  for (int m = 0; m < q0.members; ++m) {
    double sum = 0, apart = 0;
    float smallest = q0.at(m);
    for (int r = 0; r < q0.rows; ++r) {
      const float a = q0.at(m, r), b = q1.at(m, r);
      sum += static_cast<double>(a) + b;
      apart += std::abs(a - b);
      smallest = std::min(smallest, std::min(a, b));
    }
    mean.at(m) = sum / (2 * q0.rows);
    gap.at(m) = apart / q0.rows;
    least.at(m) = smallest;
  }
}

void FusedKernels::AccumulateLeast(const DoubleView& value, const DoubleView& active, const DoubleView& least) {
  for (int m = 0; m < value.members; ++m) {
    if (active.at(m) == 0) continue;
    double& smallest = least.at(m, 0, 0);
    double& count = least.at(m, 0, 1);
    smallest = count == 0 ? value.at(m) : std::min(smallest, value.at(m));
    count += 1;
  }
}

void FusedKernels::Copy(const DoubleView& from, const DoubleView& to) {
  for (int m = 0; m < from.members; ++m) CopyMember(from, to, m);
}

void FusedKernels::Calm(const FloatView& x, double limit, const DoubleView& calm) { FindCalm(x, limit, calm); }
void FusedKernels::Calm(const DoubleView& x, double limit, const DoubleView& calm) { FindCalm(x, limit, calm); }

void FusedKernels::CopyUnlessCalm(const FloatView& from, const DoubleView& calm, const FloatView& to) {
  CopyThoseNotCalm(from, calm, to);
}
void FusedKernels::CopyUnlessCalm(const DoubleView& from, const DoubleView& calm, const DoubleView& to) {
  CopyThoseNotCalm(from, calm, to);
}

void FusedKernels::PutBack(const FloatView& from, const DoubleView& active, const DoubleView& calm,
                           const FloatView& to) {
  PutThoseBack(from, active, calm, to);
}
void FusedKernels::PutBack(const DoubleView& from, const DoubleView& active, const DoubleView& calm,
                           const DoubleView& to) {
  PutThoseBack(from, active, calm, to);
}

}  // namespace datacom::learner
