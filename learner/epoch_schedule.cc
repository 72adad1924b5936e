#include "learner/epoch_schedule.h"

#include <algorithm>

namespace datacom::learner {

uint32_t EpochSchedule::last_epoch() const {
  return static_cast<uint32_t>((updates_.env_steps + steps_per_epoch_ - 1) / steps_per_epoch_);
}

uint64_t EpochSchedule::EpochSteps(uint32_t epoch) const {
  return std::min(epoch * steps_per_epoch_, updates_.env_steps);
}

uint32_t EpochSchedule::EpochOfRow(uint64_t row) const {
  return static_cast<uint32_t>((row - 1) / steps_per_epoch_ + 1);
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
