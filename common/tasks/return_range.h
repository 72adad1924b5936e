// The range of discounted returns of a task, from the range of its rewards (docs/tasks.md 3.5). Pure
// functions.
#ifndef DATACOM_COMMON_TASKS_RETURN_RANGE_H_
#define DATACOM_COMMON_TASKS_RETURN_RANGE_H_

#include "absl/status/statusor.h"
#include "common/tasks/task.h"

namespace datacom {

struct ReturnRange {
  double low = 0, high = 0;
};

// Holds the discounted return from any state, for an episode that an absorbing step ends and for one that goes on for
// ever. discount: of a step of `spec`, in [0, 1). INVALID_ARGUMENT, naming the task, if it does not state its rewards.
absl::StatusOr<ReturnRange> ReturnRangeOf(const TaskSpec& spec, double discount);

// The range of rewards of a decision that holds an action for `repeat` >= 1 steps and adds their rewards.
RewardRange RepeatedRewards(const RewardRange& step, int repeat);

}  // namespace datacom

#endif  // DATACOM_COMMON_TASKS_RETURN_RANGE_H_
// SPDX-License-Identifier: Apache-2.0
