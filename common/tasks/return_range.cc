#include "common/tasks/return_range.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace datacom {

absl::StatusOr<ReturnRange> ReturnRangeOf(const TaskSpec& spec, double discount) {
  if (!spec.rewards) {
    return absl::InvalidArgumentError(
        absl::StrCat("task ", spec.name, " does not state the range of its rewards (reward_range of a task file)"));
  }
  const RewardRange& rewards = *spec.rewards;
  // Steps until an end are worth (1 - w) step / (1 - discount) and the end w final, with w = discount^steps: a mean.
  const double steps = 1 / (1 - discount);
  return ReturnRange{rewards.sum_low + std::min(rewards.step_low * steps, rewards.final_low),
                     rewards.sum_high + std::max(rewards.step_high * steps, rewards.final_high)};
}

RewardRange RepeatedRewards(const RewardRange& step, int repeat) {
  RewardRange decision = step;
  decision.step_low *= repeat;
  decision.step_high *= repeat;
  // The end may come with the first of the held steps or with the last.
  decision.final_low += (repeat - 1) * std::min(step.step_low, 0.0);
  decision.final_high += (repeat - 1) * std::max(step.step_high, 0.0);
  return decision;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
