
#include "learner/algorithms/dynamics_kernels.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

constexpr float kLeast = -10, kLargest = 0.5f;

class DynamicsCpu : public CpuImpl<DynamicsKernels> {
 public:
  void Likelihood(const FloatView& out, const FloatView& target, const FloatView& weight, const FloatView& d_out,
                  const DoubleView& loss) override {
    const int d = target.cols;
    const FloatView upper = Temporary(0, target), v = Temporary(1, target), precision = Temporary(2, target);
    for (int m = 0; m < out.members; ++m) {
      float rows = 0;
      for (int r = 0; r < out.rows; ++r) rows += weight.at(m, r);
      const float share = rows > 0 ? 1 / (rows * static_cast<float>(d)) : 0;
      // upper = softplus(0.5 - l); v's argument = 10 + 0.5 - upper.
      EachNumber(target, [&](int r, int i) { upper.at(m, r, i) = kLargest - out.at(m, r, d + i); });
      Apply(loops_.softplus, upper, v, m);
      EachNumber(target, [&](int r, int i) { v.at(m, r, i) = kLargest - v.at(m, r, i) - kLeast; });
      Apply(loops_.sigmoid, upper, upper, m);
      Apply(loops_.sigmoid, v, precision, m);
      EachNumber(target, [&](int r, int i) { upper.at(m, r, i) *= precision.at(m, r, i); });  // dv/dl
      Apply(loops_.softplus, v, v, m);
      EachNumber(target, [&](int r, int i) {
        v.at(m, r, i) += kLeast;
        precision.at(m, r, i) = -v.at(m, r, i);
      });
      Apply(loops_.exp, precision, precision, m);
      double sum = 0;
      for (int r = 0; r < out.rows; ++r) {
        const float part = weight.at(m, r) * share;
        float row = 0;
        for (int i = 0; i < d; ++i) {
          const float apart = out.at(m, r, i) - target.at(m, r, i), weighted = apart * precision.at(m, r, i);
          row += apart * weighted + v.at(m, r, i);
          d_out.at(m, r, i) = part * 2 * weighted;
          d_out.at(m, r, d + i) = part * (1 - apart * weighted) * upper.at(m, r, i);
        }
        sum += static_cast<double>(part) * row;
      }
      loss.at(m) += sum;
    }
  }

  void SquaredError(const FloatView& out, const FloatView& target, const FloatView& weight,
                    const DoubleView& sum) override {
    for (int m = 0; m < out.members; ++m) {
      for (int r = 0; r < out.rows; ++r) {
        float row = 0;
        for (int i = 0; i < target.cols; ++i) {
          const float apart = out.at(m, r, i) - target.at(m, r, i);
          row += apart * apart;
        }
        sum.at(m) += static_cast<double>(weight.at(m, r)) * row / target.cols;
      }
    }
  }

  void Add(const DoubleView& value, const DoubleView& sum) override {
    for (int m = 0; m < sum.members; ++m) sum.at(m) += value.at(m);
  }
};

const CpuImpls::Register<DynamicsKernels, DynamicsCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
