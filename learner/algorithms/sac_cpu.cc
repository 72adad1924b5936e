#include <cmath>

#include "learner/algorithms/sac_kernels.h"
#include "learner/algorithms/twin_cpu.h"
#include "learner/nn/cpu/cpu_impl.h"

namespace datacom::learner {
namespace {

constexpr float kHalfLogTwoPi = 0.918938533204672742f;

class SacCpu : public CpuImpl<SacKernels> {
 public:
  void SampleAction(const FloatView& mean, const FloatView& log_std, const FloatView& noise, const ActionBox& box,
                    const ActionSample& out) override {
    const FloatView value = Temporary(0, mean);
    for (int m = 0; m < mean.members; ++m) {
      EachNumber(mean, [&](int r, int i) { value.at(m, r, i) = Clamp(log_std.at(m, r, i), -20, 2); });
      Apply(loops_.exp, value, value, m);
      EachNumber(
          mean, [&](int r, int i) { out.tanh.at(m, r, i) = mean.at(m, r, i) + value.at(m, r, i) * noise.at(m, r, i); });
      Apply(loops_.tanh, out.tanh, out.tanh, m);
      EachNumber(mean, [&](int r, int i) {
        const float t = out.tanh.at(m, r, i);
        value.at(m, r, i) = 1 - t * t + 1e-6f;
      });
      Apply(loops_.log, value, value, m);
      for (int r = 0; r < mean.rows; ++r) {
        float log_pi = 0;
        for (int i = 0; i < mean.cols; ++i) {
          const float l = Clamp(log_std.at(m, r, i), -20, 2), eps = noise.at(m, r, i);
          out.u.at(m, r, i) = out.tanh.at(m, r, i) * box.half.at(0, 0, i) + box.centre.at(0, 0, i);
          log_pi += -0.5f * eps * eps - l - kHalfLogTwoPi - value.at(m, r, i);
        }
        out.log_pi.at(m, r) = log_pi;
      }
    }
  }

  void SampleActionGradient(const FloatView& log_std, const FloatView& noise, const ActionBox& box,
                            const ActionSample& sample, const FloatView& d_u, const FloatView& log_alpha,
                            const FloatView& d_mean, const FloatView& d_log_std) override {
    for (int m = 0; m < log_std.members; ++m) {
      const float d_log_pi = std::exp(log_alpha.at(m)) / static_cast<float>(log_std.rows);
      Apply(loops_.exp, log_std, d_log_std, m);
      EachNumber(log_std, [&](int r, int i) {
        const float l = log_std.at(m, r, i);
        const float t = sample.tanh.at(m, r, i);
        const float slope = 1 - t * t;
        const float d_raw = d_u.at(m, r, i) * box.half.at(0, 0, i) * slope + d_log_pi * 2 * t * slope / (slope + 1e-6f);
        const bool inside = l >= -20 && l <= 2;
        d_mean.at(m, r, i) = d_raw;
        d_log_std.at(m, r, i) = inside ? d_raw * d_log_std.at(m, r, i) * noise.at(m, r, i) - d_log_pi : 0.0f;
      });
    }
  }

  void ActorLoss(const TwinValues& q, const FloatView& log_pi, const FloatView& log_alpha, const FloatView& d_q0,
                 const FloatView& d_q1, const DoubleView& loss, const DoubleView& mean_log_pi) override {
    const int rows = log_pi.rows;
    const float share = -1.0f / static_cast<float>(rows);
    for (int m = 0; m < log_pi.members; ++m) {
      const TwinWeights twins(q, m);
      const float smaller = share * twins.smaller(), larger = share * twins.larger();
      double q_sum = 0, log_pi_sum = 0;
      for (int r = 0; r < rows; ++r) {
        const float a = q.q0.at(m, r), b = q.q1.at(m, r);
        const bool first = TwinWeights::FirstIsSmaller(a, b);
        d_q0.at(m, r) = first ? smaller : larger;
        d_q1.at(m, r) = first ? larger : smaller;
        q_sum += twins.Value(a, b);
        log_pi_sum += log_pi.at(m, r);
      }
      mean_log_pi.at(m) = log_pi_sum / rows;
      loss.at(m) = std::exp(static_cast<double>(log_alpha.at(m))) * mean_log_pi.at(m) - q_sum / rows;
    }
  }

  void Imitate(const FloatView& u, const FloatView& command, const DoubleView& weight, const ActionBox& box,
               const FloatView& d_u, const DoubleView& loss) override {
    for (int m = 0; m < u.members; ++m) {
      if (weight.at(m) == 0) continue;
      const float share = static_cast<float>(weight.at(m) / u.rows);
      double sum = 0;
      EachNumber(u, [&](int r, int i) {
        const float half = box.half.at(0, 0, i), distance = (u.at(m, r, i) - command.at(m, r, i)) / half;
        d_u.at(m, r, i) += 2 * share * distance / half;
        sum += static_cast<double>(distance) * distance;
      });
      loss.at(m) += weight.at(m) * sum / u.rows;
    }
  }

  void TemperatureGradient(const DoubleView& mean_log_pi, const DoubleView& target_entropy, const FloatView& log_alpha,
                           const FloatView& gradient) override {
    for (int m = 0; m < log_alpha.members; ++m) {
      gradient.at(m) = static_cast<float>(-std::exp(static_cast<double>(log_alpha.at(m))) *
                                          (mean_log_pi.at(m) + target_entropy.at(m)));
    }
  }
};

const CpuImpls::Register<SacKernels, SacCpu> kRegistered;

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
