#include "learner/algorithms/cost_kernels.h"
#include "learner/nn/cpu/cpu_impl.h"
#include "learner/nn/cpu/row_math.h"

namespace datacom::learner {
namespace {

class CostCpu : public CpuImpl<CostKernels> {
 public:
  void CostTarget(const FloatView& cost, const FloatView& absorbing, const FloatView& next, double discount,
                  const FloatView& y) override {
    const float gamma = static_cast<float>(discount);
    for (int m = 0; m < y.members; ++m) {
      for (int r = 0; r < y.rows; ++r) {
        y.at(m, r) = NonNegative(cost.at(m, r)) + gamma * (1 - absorbing.at(m, r)) * next.at(m, r);
      }
    }
  }

  void CostRisk(const FloatView& mean, const FloatView& spread, const DoubleView& margin,
                const FloatView& cvar) override {
    for (int m = 0; m < cvar.members; ++m) {
      const float weight = static_cast<float>(margin.at(m));
      for (int r = 0; r < cvar.rows; ++r) cvar.at(m, r) = mean.at(m, r) + weight * Softplus(spread.at(m, r));
    }
  }

  void CostRiskGradient(const FloatView& d_cvar, const FloatView& spread, const DoubleView& margin,
                        const FloatView& d_spread) override {
    for (int m = 0; m < d_cvar.members; ++m) {
      const float weight = static_cast<float>(margin.at(m));
      for (int r = 0; r < d_cvar.rows; ++r) {
        d_spread.at(m, r) = d_cvar.at(m, r) * weight * SoftplusSlope(spread.at(m, r));
      }
    }
  }

  void Multiplier(const FloatView& raw, const DoubleView& mean_cost, const DoubleView& limit, const DoubleView& damping,
                  const DoubleView& price, const FloatView& gradient) override {
    for (int m = 0; m < raw.members; ++m) {
      const double slack = limit.at(m) - mean_cost.at(m);
      price.at(m) = static_cast<double>(Softplus(raw.at(m))) - damping.at(m) * slack;
      gradient.at(m) = static_cast<float>(static_cast<double>(Sigmoid(raw.at(m))) * slack);
    }
  }
};

const CpuImpls::Register<CostKernels, CostCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
