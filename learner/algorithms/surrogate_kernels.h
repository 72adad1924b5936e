// The loss of a Gaussian policy on rows that an older policy has made, and the divergence of the two
// (docs/algorithms.md 18.5). The standard deviation exp(log_std) does not depend on the state.
#ifndef DATACOM_LEARNER_ALGORITHMS_SURROGATE_KERNELS_H_
#define DATACOM_LEARNER_ALGORITHMS_SURROGATE_KERNELS_H_

#include "learner/nn/kernels.h"

namespace datacom::learner {

struct PolicyOutput {
  FloatView mean;     // [members, rows, action]
  FloatView log_std;  // [members, 1, action]
};

struct ActedRows {
  FloatView action;     // [members, rows, action]
  FloatView log_prob;   // [members, rows, 1]: log-density of action under the policy that acted
  FloatView advantage;  // [members, rows, 1]
};

class SurrogateKernels : public KernelGroup {
 public:
  // With ratio = p(action) / exp(log_prob), A = advantage:
  //   loss = -share * sum over the rows of min(ratio A, clamp(ratio, 1 - clip, 1 + clip) A), rounded to float32
  // and its gradients, d_mean [members, rows, action] and d_log_std [members, 1, action]. If `add`, loss and d_log_std
  // are added to. clip: [members, 1, 1]; infinity is allowed.
  virtual void SurrogateLoss(const PolicyOutput& policy, const ActedRows& rows, const DoubleView& clip, double share,
                             bool add, const FloatView& d_mean, const FloatView& d_log_std, const DoubleView& loss) = 0;
  // sum += share * sum over rows and actions of KL(before || after).
  virtual void AddDivergence(const PolicyOutput& before, const PolicyOutput& after, double share,
                             const DoubleView& sum) = 0;
  // Active members with divergence > limit become inactive and stopped; those without a finite divergence inactive.
  virtual void StopBeyond(const DoubleView& divergence, const DoubleView& limit, const DoubleView& active,
                          const DoubleView& stopped) = 0;
  virtual void Resume(const DoubleView& stopped, const DoubleView& active) = 0;  // stopped members are active again
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_SURROGATE_KERNELS_H_
// SPDX-License-Identifier: Apache-2.0
