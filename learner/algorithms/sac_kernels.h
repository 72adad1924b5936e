// SAC's squashed Gaussian policy and its losses (docs/algorithms.md 1.5).
#ifndef DATACOM_LEARNER_ALGORITHMS_SAC_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_SAC_KERNELS_H_

#include "learner/algorithms/critic_kernels.h"
#include "learner/nn/kernels.h"

namespace datacom::learner {

struct ActionSample {
  FloatView u;       // [members, rows, action]: tanh(mean + std * noise) * half + centre
  FloatView tanh;    // [members, rows, action]
  FloatView log_pi;  // [members, rows, 1]
};

class SacKernels : public KernelGroup {
 public:
  // mean, log_std: [members, rows, action] linear outputs; log_std is clamped to [-20, 2].
  virtual void SampleAction(const FloatView& mean, const FloatView& log_std, const FloatView& noise,
                            const ActionBox& box, const ActionSample& out) = 0;
  // Gradients of mean(alpha * log pi) + <d_u, u>.
  virtual void SampleActionGradient(const FloatView& log_std, const FloatView& noise, const ActionBox& box,
                                    const ActionSample& sample, const FloatView& d_u, const FloatView& log_alpha,
                                    const FloatView& d_mean, const FloatView& d_log_std) = 0;
  // log_alpha: [members, 1, 1]. loss = mean(alpha log pi - value of the pair), its gradients for both critics, and the
  // mean of log pi.
  virtual void ActorLoss(const TwinValues& q, const FloatView& log_pi, const FloatView& log_alpha,
                         const FloatView& d_q0, const FloatView& d_q1, const DoubleView& loss,
                         const DoubleView& mean_log_pi) = 0;
  // weight: [members, 1, 1]. Adds weight * mean over rows of |(u - command) / half of the box|^2 to the loss, and its
  // gradient to d_u.
  virtual void Imitate(const FloatView& u, const FloatView& command, const DoubleView& weight, const ActionBox& box,
                       const FloatView& d_u, const DoubleView& loss) = 0;
  virtual void TemperatureGradient(const DoubleView& mean_log_pi, const DoubleView& target_entropy,
                                   const FloatView& log_alpha, const FloatView& gradient) = 0;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_SAC_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
