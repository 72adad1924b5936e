// When the epochs of a run end, in rows and in updates. Immutable; thread-safe.
#ifndef DATACOM_LEARNER_EPOCH_SCHEDULE_H_
#define DATACOM_LEARNER_EPOCH_SCHEDULE_H_

#include <cstdint>

#include "common/transitions/update_schedule.h"

namespace datacom::learner {

class EpochSchedule {
 public:
  EpochSchedule() = default;
  EpochSchedule(const UpdateSchedule& updates, uint64_t steps_per_epoch)
      : updates_(updates), steps_per_epoch_(steps_per_epoch) {}

  const UpdateSchedule& updates() const { return updates_; }
  uint64_t env_steps() const { return updates_.env_steps; }  // of the whole run
  uint64_t last_update() const { return updates_.LastUpdate(); }
  uint64_t RowsSeen(uint64_t update) const { return updates_.RowsSeen(update); }
  // The run has the epochs 0 .. last_epoch(). The last one ends early if the run ends inside it.
  uint32_t last_epoch() const;
  uint64_t EpochSteps(uint32_t epoch) const;  // environment steps at the epoch's end
  bool EndsEarly(uint32_t epoch) const { return EpochSteps(epoch) < epoch * steps_per_epoch_; }
  uint64_t EpochUpdate(uint32_t epoch) const { return updates_.UpdatesAt(EpochSteps(epoch)); }  // its last
  uint32_t EpochOfRow(uint64_t row) const;                                                      // rows count from 1

 private:
  UpdateSchedule updates_;
  uint64_t steps_per_epoch_ = 1;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_EPOCH_SCHEDULE_H_
// SPDX-License-Identifier: Apache-2.0
