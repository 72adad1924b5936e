#include <cmath>

#include "learner/algorithms/surrogate_kernels.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

constexpr float kHalfLogTwoPi = 0.918938533204672742f;

class SurrogateCpu : public CpuImpl<SurrogateKernels> {
 public:
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
};

const CpuImpls::Register<SurrogateKernels, SurrogateCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
