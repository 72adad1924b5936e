// The linear map from [-1, 1] to a task's action box, float32. Thread-safe once made; allocates only then.
#ifndef DATACOM_COMMON_ACTING_ACTION_SCALE_H_
#define DATACOM_COMMON_ACTING_ACTION_SCALE_H_

#include <vector>

#include "common/tasks/task.h"

namespace datacom {

class ActionScale {
 public:
  explicit ActionScale(const TaskSpec& spec) {
    for (int i = 0; i < spec.action_dim; ++i) {
      half_range_.push_back(static_cast<float>((spec.action_high[i] - spec.action_low[i]) / 2));
      centre_.push_back(static_cast<float>((spec.action_high[i] + spec.action_low[i]) / 2));
    }
  }
  // The number i of an action, not clamped.
  float Scale(int i, float value) const { return value * half_range_[i] + centre_[i]; }

 private:
  std::vector<float> half_range_, centre_;  // [action]
};

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_ACTION_SCALE_H_
// SPDX-License-Identifier: Apache-2.0
