// SAC, the unconstrained baseline (docs/algorithms.md 9): executes the policy's action and ignores costs.
#ifndef DATACOM_LEARNER_ALGORITHMS_SAC_H_
#define DATACOM_LEARNER_ALGORITHMS_SAC_H_

#include "learner/algorithms/soft_actor_critic.h"

namespace datacom::learner {

class Sac : public SoftActorCritic {
 public:
  explicit Sac(const AlgorithmConfig& config) : Sac(config, Unbuilt()) { Finish(); }

 protected:
  // For algorithms that learn one more net. This constructor declares SAC's nets and builds nothing; the algorithm
  // declares its own net, which has no target, and calls Finish.
  struct Unbuilt {};
  Sac(const AlgorithmConfig& config, Unbuilt);
  void Finish();
  void LoadBatch(const Batch& batch) override { LoadTransitions(batch); }
  void PolicyGradients() override;
  void ValueGradients() override;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_SAC_H_
// SPDX-License-Identifier: Apache-2.0
