// The part of observations that policies see (TaskSpec::seen_dim). Not thread-safe; owns its memory, allocated when it
// is made. Of neither blocks nor allocates.
#ifndef DATACOM_COMMON_ACTING_SEEN_PART_H_
#define DATACOM_COMMON_ACTING_SEEN_PART_H_

#include <algorithm>
#include <vector>

#include "common/tasks/task.h"

namespace datacom {

class SeenPart {
 public:
  SeenPart(const TaskSpec& spec, int max_batch)
      : whole_(spec.obs_dim), seen_(spec.seen_dim()), rows_(whole_ == seen_ ? 0 : max_batch * seen_) {}

  // observations: [batch, obs_dim]. Returns [batch, seen_dim], valid until the next call; `observations` itself if
  // policies see all of it.
  const float* Of(int batch, const float* observations) {
    if (whole_ == seen_) return observations;
    for (int r = 0; r < batch; ++r) std::copy_n(observations + r * whole_, seen_, &rows_[r * seen_]);
    return rows_.data();
  }

 private:
  int whole_ = 0, seen_ = 0;
  std::vector<float> rows_;
};

}  // namespace datacom

#endif  // DATACOM_COMMON_ACTING_SEEN_PART_H_
// SPDX-License-Identifier: Apache-2.0
