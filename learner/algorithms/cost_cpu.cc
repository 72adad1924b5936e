#include <algorithm>
#include <cmath>

#include "learner/algorithms/cost_kernels.h"
#include "learner/nn/cpu/cpu_impl.h"

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

  void CostRisk(const FloatView& mean, const FloatView& spread, const FloatView& margin,
                const FloatView& cvar) override {
    for (int m = 0; m < cvar.members; ++m) {
      const float weight = margin.at(m);
      for (int r = 0; r < cvar.rows; ++r) cvar.at(m, r) = mean.at(m, r) + weight * Softplus(spread.at(m, r));
    }
  }

  void CostRiskGradient(const FloatView& d_cvar, const FloatView& spread, const FloatView& margin,
                        const FloatView& d_spread) override {
    for (int m = 0; m < d_cvar.members; ++m) {
      const float weight = margin.at(m);
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

  void AddPriced(const DoubleView& multiplier, const FloatView& d_cost, const FloatView& d_action) override {
    for (int m = 0; m < d_action.members; ++m) {
      if (multiplier.at(m) == 0) continue;
      double cost = 0, action = 0;
      EachNumber(d_action, [&](int r, int i) {
        cost += static_cast<double>(std::abs(d_cost.at(m, r, i)));
        action += static_cast<double>(std::abs(d_action.at(m, r, i)));
      });
      const float weight = static_cast<float>(multiplier.at(m) * action / std::max(cost, 1e-9));
      EachNumber(d_action, [&](int r, int i) { d_action.at(m, r, i) += weight * d_cost.at(m, r, i); });
    }
  }

  void GaussianRisk(const FloatView& mean, const FloatView& log_std, const FloatView& mean_gradient,
                    const FloatView& log_std_gradient, const FloatView& margin, const DoubleView& delta,
                    const DoubleView& k, const DoubleView& J) override {
    const FloatView value = Temporary(0, mean), slope = Temporary(1, mean), spread = Temporary(2, mean);
    for (int m = 0; m < mean.members; ++m) {
      const float weight = margin.at(m);
      Apply(loops_.softplus, mean, value, m);
      Apply(loops_.sigmoid, mean, slope, m);
      for (int r = 0; r < mean.rows; ++r) spread.at(m, r) = Clamp(log_std.at(m, r), -20, 2);
      Apply(loops_.exp, spread, spread, m);
      for (int r = 0; r < mean.rows; ++r) {
        const float l = log_std.at(m, r), wide = weight * spread.at(m, r);
        k.at(m, r) = static_cast<double>(value.at(m, r) + wide) - delta.at(m);
        const float log_std_slope = l >= -20 && l <= 2 ? wide : 0.0f;
        for (int i = 0; i < J.cols; ++i) {
          J.at(m, r, i) = slope.at(m, r) * mean_gradient.at(m, r, i) + log_std_slope * log_std_gradient.at(m, r, i);
        }
      }
    }
  }

  void GaussianLoss(const FloatView& mean, const FloatView& spread, const GaussianTarget& target,
                    const FloatView& d_mean, const FloatView& d_spread, const DoubleView& loss) override {
    const bool feasibility = target.head == GaussianHead::kFeasibility;
    const float gamma = static_cast<float>(target.discount), floor = feasibility ? 1e-4f : 1e-8f;
    const FloatView softplus = Temporary(0, mean), softplus_slope = Temporary(1, mean),
                    next_softplus = Temporary(2, mean);
    const FloatView& read = feasibility ? mean : spread;
    const FloatView& next_read = feasibility ? target.next_mean : target.next_spread;
    for (int m = 0; m < mean.members; ++m) {
      const int rows = RowsThatCount(target.row_weight, m);
      Apply(loops_.softplus, read, softplus, m);
      Apply(loops_.sigmoid, read, softplus_slope, m);
      Apply(loops_.softplus, next_read, next_softplus, m);
      double sum = 0;
      for (int r = 0; r < rows; ++r) {
        const float o = mean.at(m, r), s = spread.at(m, r), next_s = target.next_spread.at(m, r);
        const float cost = NonNegative(target.cost.at(m, r));
        const bool ends = target.absorbing.at(m, r) != 0;
        float value, std, next, next_variance, slope, spread_slope;
        if (feasibility) {
          value = softplus.at(m, r), slope = softplus_slope.at(m, r);
          std = spread_slope = std::exp(s);
          next = next_softplus.at(m, r), next_variance = std::exp(2 * next_s);
        } else {
          value = o, slope = 1;
          const float raw = softplus.at(m, r), next_std = next_softplus.at(m, r);
          std = Clamp(raw, 1e-4f, 1e4f), spread_slope = std == raw ? softplus_slope.at(m, r) : 0.0f;
          next = target.next_mean.at(m, r), next_variance = Clamp(next_std * next_std, 1e-8f, 1e8f);
        }
        const float y = ends ? cost : cost + gamma * next;
        const float second = cost * cost + 2 * gamma * cost * next + gamma * gamma * (next_variance + next * next);
        const float variance =
            ends && feasibility ? (cost - value) * (cost - value) : Clamp(second - value * value, floor, 1e8f);
        const float mean_error = value - y, std_error = std - std::sqrt(variance);
        sum += static_cast<double>(mean_error) * mean_error + static_cast<double>(std_error) * std_error;
        d_mean.at(m, r) = 2 * mean_error / rows * slope;
        d_spread.at(m, r) = 2 * std_error * spread_slope / rows;
      }
      for (int r = rows; r < mean.rows; ++r) d_mean.at(m, r) = d_spread.at(m, r) = 0;
      loss.at(m) = sum / rows;
    }
  }
};

const CpuImpls::Register<CostKernels, CostCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
