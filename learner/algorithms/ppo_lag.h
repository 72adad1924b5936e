// PPOLag (docs/algorithms.md 18.5): proximal policy optimisation of the reward's advantage minus the cost's,
// weighed by a Lagrange multiplier. In every minibatch of a pass the critics step, then the policy on the clipped
// ratio. The passes end when the new policy has diverged from the one that acted.
#ifndef DATACOM_LEARNER_ALGORITHMS_PPO_LAG_H_
#define DATACOM_LEARNER_ALGORITHMS_PPO_LAG_H_

#include "learner/algorithms/on_policy.h"

namespace datacom::learner {

class PpoLag : public OnPolicy {
 public:
  explicit PpoLag(const AlgorithmConfig& config);

 protected:
  void Learn() override;
  void Minibatch(const FloatView& rows) override;

 private:
  void PolicyStep(const FloatView& rows);
  void CheckDivergence();

  DoubleView clip_ratio_, target_kl_;  // [M, 1, 1]
  DoubleView divergence_;              // [block, 1, 1]
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_PPO_LAG_H_
// SPDX-License-Identifier: Apache-2.0
