// SAC, the unconstrained baseline (learner/algorithms/README.md 9): executes the policy's action, ignores costs.
#ifndef DATACOM_LEARNER_ALGORITHMS_SAC_H_
#define DATACOM_LEARNER_ALGORITHMS_SAC_H_

#include "learner/algorithms/soft_actor_critic.h"

namespace datacom::learner {

class Sac : public SoftActorCritic {
 public:
  explicit Sac(const AlgorithmConfig& config) : Sac(config, Unbuilt()) { Finish(); }
  ActingParameters GetActingParameters(int member) const override;
  std::string acting_rule() const override { return "gaussian_policy"; }
  bool needs_dynamics() const override { return false; }

 protected:
  // For algorithms that learn one net more: its own nets declared, with nothing built; they declare theirs, without
  // targets, and Finish.
  struct Unbuilt {};
  Sac(const AlgorithmConfig& config, Unbuilt);
  void Finish();
  void LoadBatch(const Batch& batch) override { LoadTransitions(batch); }
  void PolicyGradients() override;
  void ValueGradients() override;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_ALGORITHMS_SAC_H_
