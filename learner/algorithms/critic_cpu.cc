#include <algorithm>
#include <cmath>

#include "learner/algorithms/critic_kernels.h"
#include "learner/algorithms/twin_cpu.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

class CriticCpu : public CpuImpl<CriticKernels> {
 public:
  void TwinTarget(const TargetStep& step, const TwinValues& next, const FloatView& y) override {
    for (int m = 0; m < y.members; ++m) {
      const TwinWeights twins(next, m);
      const MemberStep target(step, m);
      for (int r = 0; r < y.rows; ++r) y.at(m, r) = target.At(r, twins.Value(next.q0.at(m, r), next.q1.at(m, r)));
    }
  }

  void SquaredLoss(const FloatView& q, const FloatView& y, double weight, const FloatView& d_q,
                   const DoubleView& loss) override {
    for (int m = 0; m < q.members; ++m) {
      double sum = 0;
      for (int r = 0; r < q.rows; ++r) {
        const float error = q.at(m, r) - y.at(m, r);
        d_q.at(m, r) = 2 * error / q.rows;
        sum += static_cast<double>(error) * error;
      }
      loss.at(m) += weight * sum / q.rows;
    }
  }

  void WeightedMean(const FloatView& x, const DoubleView& weight, const FloatView& d_x,
                    const DoubleView& loss) override {
    for (int m = 0; m < x.members; ++m) {
      const float share = static_cast<float>(weight.at(m) / x.rows);
      double sum = 0;
      for (int r = 0; r < x.rows; ++r) {
        sum += x.at(m, r);
        d_x.at(m, r) = share;
      }
      loss.at(m) += weight.at(m) * sum / x.rows;
    }
  }

  void CriticValues(const FloatView& q0, const FloatView& q1, const DoubleView& scale, const DoubleView& mean,
                    const DoubleView& least, const DoubleView& gap) override {
    for (int m = 0; m < q0.members; ++m) {
      double sum = 0, apart = 0;
      float smallest = q0.at(m);
      for (int r = 0; r < q0.rows; ++r) {
        const float a = q0.at(m, r), b = q1.at(m, r);
        sum += static_cast<double>(a) + b;
        apart += std::abs(a - b);
        smallest = std::min(smallest, std::min(a, b));
      }
      mean.at(m) = sum / (2 * q0.rows) / scale.at(m);
      gap.at(m) = apart / q0.rows / scale.at(m);
      least.at(m) = smallest / scale.at(m);
    }
  }
};

const CpuImpls::Register<CriticKernels, CriticCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
