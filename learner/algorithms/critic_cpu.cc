#include <algorithm>
#include <cmath>

#include "learner/algorithms/critic_kernels.h"
#include "learner/algorithms/twin_cpu.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

// The targets of one member, row by row, in float32.
class MemberStep {
 public:
  MemberStep(const TargetStep& step, int member)
      : step_(step),
        member_(member),
        scale_(step.scale.at(member)),
        least_(step.least.at(member)),
        most_(step.most.at(member)),
        discount_(static_cast<float>(step.discount)) {}
  float At(int row, float next_value) const {
    const float left = discount_ * (1 - step_.absorbing.at(member_, row));
    const float y = std::fma(left, next_value, scale_ * step_.reward.at(member_, row));
    return y < least_ ? least_ : y > most_ ? most_ : y;
  }

 private:
  const TargetStep& step_;
  const int member_;
  float scale_, least_, most_, discount_;
};

class CriticCpu : public CpuImpl<CriticKernels> {
 public:
  void Target(const TargetStep& step, const TwinValues& next, const FloatView& log_pi, const FloatView& log_alpha,
              const FloatView& y) override {
    for (int m = 0; m < y.members; ++m) {
      const TwinWeights twins(next, m);
      const MemberStep target(step, m);
      const auto value = [&](int r) { return twins.Value(next.q0.at(m, r), next.q1.at(m, r)); };
      if (log_pi.data == nullptr) {
        for (int r = 0; r < y.rows; ++r) y.at(m, r) = target.At(r, value(r));
        continue;
      }
      const float alpha = std::exp(log_alpha.at(m));
      for (int r = 0; r < y.rows; ++r) y.at(m, r) = target.At(r, value(r) - alpha * log_pi.at(m, r));
    }
  }

  void SquaredLoss(const FloatView& q, const FloatView& y, const FloatView& d_q, const DoubleView& loss) override {
    const int rows = q.cols;
    const double weight = 1.0 / q.rows;
    for (int m = 0; m < q.members; ++m) {
      loss.at(m) = 0;
      for (int net = 0; net < q.rows; ++net) {
        double sum = 0;
        for (int r = 0; r < rows; ++r) {
          const float error = q.at(m, net, r) - y.at(m, r);
          d_q.at(m, net, r) = 2 * error / rows;
          sum += static_cast<double>(error) * error;
        }
        loss.at(m) += weight * sum / rows;
      }
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

  void CriticValues(const FloatView& q, const DoubleView& scale, const DoubleView& mean, const DoubleView& least,
                    const DoubleView& gap) override {
    const int rows = q.cols, last = q.rows - 1;
    for (int m = 0; m < q.members; ++m) {
      double sum = 0, apart = 0;
      float smallest = q.at(m);
      for (int r = 0; r < rows; ++r) {
        double of_row = 0;
        for (int net = 0; net <= last; ++net) {
          of_row += q.at(m, net, r);
          smallest = std::min(smallest, q.at(m, net, r));
        }
        sum += of_row;
        apart += std::abs(q.at(m, 0, r) - q.at(m, last, r));
      }
      mean.at(m) = sum / (q.rows * rows) / scale.at(m);
      gap.at(m) = apart / rows / scale.at(m);
      least.at(m) = smallest / scale.at(m);
    }
  }
};

const CpuImpls::Register<CriticKernels, CriticCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
