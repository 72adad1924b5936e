#include <algorithm>
#include <cmath>
#include <cstring>

#include "learner/algorithms/on_policy_kernels.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

constexpr float kHalfLogTwoPi = 0.918938533204672742f;

double Mean(const FloatView& x, int member) {
  double sum = 0;
  for (int r = 0; r < x.rows; ++r) sum += x.at(member, r);
  return sum / x.rows;
}

double Inner(const FloatView& a, const FloatView& b, int member) {
  const float *x = a.row(member, 0), *y = b.row(member, 0);
  double sum = 0;
  for (int i = 0; i < a.cols; ++i) sum += static_cast<double>(x[i]) * y[i];
  return sum;
}

// y += factor x
void AddScaled(double factor, const FloatView& x, const FloatView& y, int member) {
  const float scale = static_cast<float>(factor);
  const float* from = x.row(member, 0);
  float* to = y.row(member, 0);
  for (int i = 0; i < x.cols; ++i) to[i] += scale * from[i];
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

  void SurrogateLoss(const PolicyOutput& policy, const ActedRows& rows, const DoubleView& clip, double share, bool add,
                     const FloatView& d_mean, const FloatView& d_log_std, const DoubleView& loss) override {
    const int n = policy.mean.cols;
    for (int m = 0; m < policy.mean.members; ++m) {
      const float* const log_std = policy.log_std.row(m, 0);
      const float low = static_cast<float>(1 - clip.at(m)), high = static_cast<float>(1 + clip.at(m));
      float* const inverse = Temporary(0, policy.log_std).row(m, 0);  // 1 / variance
      float* const d_std = d_log_std.row(m, 0);
      float constant = 0;
      for (int i = 0; i < n; ++i) {
        inverse[i] = std::exp(-2 * log_std[i]);
        constant -= log_std[i] + kHalfLogTwoPi;
        if (!add) d_std[i] = 0;
      }
      double sum = 0;
      for (int r = 0; r < policy.mean.rows; ++r) {
        const float *mean = policy.mean.row(m, r), *action = rows.action.row(m, r);
        float log_prob = constant;
        for (int i = 0; i < n; ++i) log_prob -= 0.5f * (action[i] - mean[i]) * (action[i] - mean[i]) * inverse[i];
        const float ratio = std::exp(log_prob - rows.log_prob.at(m, r)), A = rows.advantage.at(m, r);
        const bool clipped = A > 0 ? ratio > high : ratio < low;
        sum += clipped ? A * (A > 0 ? high : low) : ratio * A;
        const float d = clipped ? 0 : -static_cast<float>(share) * ratio * A;  // for the log-density
        for (int i = 0; i < n; ++i) {
          const float apart = (action[i] - mean[i]) * inverse[i];
          d_mean.at(m, r, i) = d * apart;
          d_std[i] += d * (apart * (action[i] - mean[i]) - 1);
        }
      }
      loss.at(m) = static_cast<float>((add ? loss.at(m) : 0) - share * sum);
    }
  }

  void AddDivergence(const PolicyOutput& before, const PolicyOutput& after, double share,
                     const DoubleView& sum) override {
    for (int m = 0; m < after.mean.members; ++m) {
      for (int i = 0; i < after.mean.cols; ++i) {
        const double old_log = before.log_std.at(m, 0, i), new_log = after.log_std.at(m, 0, i);
        const double half = 0.5 * std::exp(-2 * new_log);
        double squares = 0;
        for (int r = 0; r < after.mean.rows; ++r) {
          const double apart =
              static_cast<double>(after.mean.at(m, r, i)) - static_cast<double>(before.mean.at(m, r, i));
          squares += apart * apart;
        }
        const double each = new_log - old_log + half * std::exp(2 * old_log) - 0.5;
        sum.at(m) += share * (after.mean.rows * each + half * squares);
      }
    }
  }

  void StopBeyond(const DoubleView& divergence, const DoubleView& limit, const DoubleView& active,
                  const DoubleView& stopped) override {
    for (int m = 0; m < active.members; ++m) {
      const bool finite = std::isfinite(divergence.at(m)), beyond = divergence.at(m) > limit.at(m);
      if (active.at(m) == 0 || (finite && !beyond)) continue;
      active.at(m) = 0;
      if (finite) stopped.at(m) = 1;
    }
  }

  void Resume(const DoubleView& stopped, const DoubleView& active) override {
    for (int m = 0; m < active.members; ++m) {
      if (stopped.at(m) != 0) active.at(m) = 1;
      stopped.at(m) = 0;
    }
  }

  void Curvature(const FloatView& tangent, const FloatView& log_std, double share, const FloatView& d_mean) override {
    for (int m = 0; m < tangent.members; ++m) {
      float* const weight = Temporary(0, log_std).row(m, 0);
      for (int i = 0; i < tangent.cols; ++i) {
        weight[i] = static_cast<float>(share * std::exp(-2 * static_cast<double>(log_std.at(m, 0, i))));
      }
      EachNumber(tangent, [&](int r, int i) { d_mean.at(m, r, i) = weight[i] * tangent.at(m, r, i); });
    }
  }

  void Collect(const FloatView& from, bool add, const FloatView& to) override {
    for (int m = 0; m < to.members; ++m) {
      if (!add) std::fill_n(to.row(m, 0), to.cols, 0.0f);
      AddScaled(1, from, to, m);
    }
  }

  void FinishProduct(const FloatView& direction, int log_std, double factor, const DoubleView& damping,
                     const FloatView& product) override {
    for (int m = 0; m < product.members; ++m) {
      for (int i = log_std; i < product.cols; ++i) {
        product.at(m, 0, i) = static_cast<float>(factor) * direction.at(m, 0, i);
      }
      AddScaled(damping.at(m), direction, product, m);
    }
  }

  void BeginSolve(const FloatView& gradient, const ConjugateSolve& solve) override {
    for (int m = 0; m < gradient.members; ++m) {
      for (int i = 0; i < gradient.cols; ++i) {
        solve.x.at(m, 0, i) = 0;
        solve.residual.at(m, 0, i) = solve.direction.at(m, 0, i) = -gradient.at(m, 0, i);
      }
      solve.squared_residual.at(m) = Inner(solve.residual, solve.residual, m);
      solve.running.at(m) = 1;
    }
  }

  void ContinueSolve(const ConjugateSolve& solve) override {
    for (int m = 0; m < solve.x.members; ++m) {
      if (solve.running.at(m) == 0) continue;
      double& squares = solve.squared_residual.at(m);
      const double length = squares / (Inner(solve.direction, solve.product, m) + 1e-6);
      AddScaled(length, solve.direction, solve.x, m);
      AddScaled(-length, solve.product, solve.residual, m);
      const double left = Inner(solve.residual, solve.residual, m);
      if (std::sqrt(left) < 1e-10) {
        solve.running.at(m) = 0;
        continue;
      }
      const float keep = static_cast<float>(left / (squares + 1e-6));
      for (int i = 0; i < solve.x.cols; ++i) {
        solve.direction.at(m, 0, i) = solve.residual.at(m, 0, i) + keep * solve.direction.at(m, 0, i);
      }
      squares = left;
    }
  }

  void NaturalStep(const FloatView& x, const FloatView& product, const DoubleView& length, const DoubleView& active,
                   const FloatView& parameters) override {
    for (int m = 0; m < x.members; ++m) {
      const double scale = std::sqrt(2 * length.at(m) / (Inner(x, product, m) + 1e-8));
      if (!std::isfinite(scale * scale * Inner(x, x, m))) active.at(m) = 0;
      if (active.at(m) != 0) AddScaled(scale, x, parameters, m);
    }
  }
};

const CpuImpls::Register<OnPolicyKernels, OnPolicyCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
