// Copies a member's statistics into the record of an epoch. A pure function; thread-safe.
#ifndef DATACOM_LEARNER_EPOCH_STATS_H_
#define DATACOM_LEARNER_EPOCH_STATS_H_

#include "datacom/v1/checkpoint.pb.h"
#include "learner/algorithms/algorithm.h"

namespace datacom::learner {

inline void CopyStats(const Stats& stats, int member, v1::MemberEpoch* to) {
  to->set_policy_loss(stats.policy_loss[member]);
  to->set_critic_loss(stats.critic_loss[member]);
  to->set_constraint_loss(stats.constraint_loss[member]);
  to->set_constraint_mean(stats.constraint_mean[member]);
  to->set_entropy(stats.entropy[member]);
  to->set_delta(stats.delta[member]);
  to->set_alpha(stats.alpha[member]);
  to->set_multiplier(stats.multiplier[member]);
  to->set_q_mean(stats.q_mean[member]);
  to->set_q_min(stats.q_min[member]);
  to->set_q_gap(stats.q_gap[member]);
  to->set_actor_gradient_norm(stats.actor_gradient_norm[member]);
  to->set_critic_gradient_norm(stats.critic_gradient_norm[member]);
  to->set_constraint_gradient_norm(stats.constraint_gradient_norm[member]);
  to->set_diverged(stats.diverged[member] != 0);
}

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_EPOCH_STATS_H_
