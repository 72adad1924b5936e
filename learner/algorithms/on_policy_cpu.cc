#include <algorithm>
#include <cmath>
#include <cstring>

#include "learner/algorithms/on_policy_kernels.h"
#include "learner/nn/cpu/cpu_impl.h"
#include "learner/nn/cpu/row_math.h"

namespace datacom::learner {
namespace {

double Mean(const FloatView& x, int member) {
  double sum = 0;
  for (int r = 0; r < x.rows; ++r) sum += x.at(member, r);
  return sum / x.rows;
}

class OnPolicyCpu : public CpuImpl<OnPolicyKernels> {
 public:
  void Advantages(const PathRows& rows, double least, double discount, const DoubleView& lambda,
                  const FloatView& advantage, const FloatView& target) override {
    for (int m = 0; m < advantage.members; ++m) {
      double next_advantage = 0, next_value = 0;
      for (int r = advantage.rows - 1; r >= 0; --r) {
        if (r + 1 == advantage.rows || rows.path_end.at(m, r) != 0) {
          next_advantage = 0;
          next_value = rows.next_value.at(m, r);
        }
        const double raw = rows.signal.at(m, r), signal = raw < least ? least : raw, value = rows.value.at(m, r);
        const double gain = signal + discount * (1 - static_cast<double>(rows.absorbing.at(m, r))) * next_value - value;
        next_advantage = gain + discount * lambda.at(m) * next_advantage;
        next_value = value;
        advantage.at(m, r) = static_cast<float>(next_advantage);
        target.at(m, r) = static_cast<float>(next_advantage + value);
      }
    }
  }

  void Standardise(const FloatView& x) override {
    for (int m = 0; m < x.members; ++m) {
      const double mean = Mean(x, m);
      double squares = 0;
      for (int r = 0; r < x.rows; ++r) squares += (x.at(m, r) - mean) * (x.at(m, r) - mean);
      const double width = std::sqrt(squares / x.rows) + 1e-8;
      for (int r = 0; r < x.rows; ++r) x.at(m, r) = static_cast<float>((x.at(m, r) - mean) / width);
    }
  }

  void Centre(const FloatView& x) override {
    for (int m = 0; m < x.members; ++m) {
      const double mean = Mean(x, m);
      for (int r = 0; r < x.rows; ++r) x.at(m, r) = static_cast<float>(x.at(m, r) - mean);
    }
  }

  void PriceAdvantages(const FloatView& reward, const FloatView& cost, const DoubleView& multiplier,
                       const FloatView& out) override {
    for (int m = 0; m < out.members; ++m) {
      const float price = static_cast<float>(multiplier.at(m));
      for (int r = 0; r < out.rows; ++r) out.at(m, r) = (reward.at(m, r) - price * cost.at(m, r)) / (1 + price);
    }
  }

  void Copy(const FloatView& from, const FloatView& to) override {
    for (int m = 0; m < to.members; ++m) {
      for (int r = 0; r < to.rows; ++r) std::memcpy(to.row(m, r), from.row(m, r), sizeof(float) * to.cols);
    }
  }

  void Gather(const FloatView& rows, const DoubleView& index, const FloatView& out) override {
    for (int m = 0; m < out.members; ++m) {
      for (int r = 0; r < index.rows; ++r) {
        std::memcpy(out.row(m, r), rows.row(m, static_cast<int>(index.at(m, r))), sizeof(float) * out.cols);
      }
    }
  }

  void AddSquares(const FloatView& parameters, const DoubleView& weight, const FloatView& gradient,
                  const DoubleView& loss) override {
    for (int m = 0; m < parameters.members; ++m) {
      const int n = parameters.cols;
      const double squares = loops_.squared_sum(parameters.row(m, 0), n);
      loss.at(m) = static_cast<float>(loss.at(m) + weight.at(m) * squares);
      const float factor = static_cast<float>(2 * weight.at(m));
      const float* __restrict from = parameters.row(m, 0);
      float* __restrict to = gradient.row(m, 0);
      for (int i = 0; i < n; ++i) to[i] += factor * from[i];
    }
  }

  void Shorten(const DoubleView& norm, const DoubleView& limit, const FloatView& gradient) override {
    for (int m = 0; m < gradient.members; ++m) {
      const float factor = static_cast<float>(limit.at(m) / (norm.at(m) + 1e-6));
      if (!(factor < 1)) continue;
      float* const values = gradient.row(m, 0);
      for (int i = 0; i < gradient.cols; ++i) values[i] *= factor;
    }
  }
};

const CpuImpls::Register<OnPolicyKernels, OnPolicyCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
