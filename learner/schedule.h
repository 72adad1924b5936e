// Which update sees which rows, and when epochs end: arithmetic on the experiment's numbers. Immutable; thread-safe.
#ifndef DATACOM_LEARNER_SCHEDULE_H_
#define DATACOM_LEARNER_SCHEDULE_H_

#include <cstdint>

#include "common/transitions/update_schedule.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom::learner {

class Schedule {
 public:
  struct Options {
    UpdateSchedule updates;
    uint64_t steps_per_epoch = 1;
  };
  explicit Schedule(const Options& options) : options_(options) {}
  static Schedule Of(const v1::Experiment& resolved);

  uint64_t last_update() const { return options_.updates.LastUpdate(); }
  uint64_t RowsSeen(uint64_t update) const { return options_.updates.RowsSeen(update); }
  uint64_t UpdatesAt(uint64_t rows) const { return options_.updates.UpdatesAt(rows); }
  // The run has the epochs 0 .. last_epoch(). The last one ends early if the run ends inside it.
  uint32_t last_epoch() const;
  uint64_t EpochSteps(uint32_t epoch) const;  // environment steps at the epoch's end
  bool EndsEarly(uint32_t epoch) const { return EpochSteps(epoch) < epoch * options_.steps_per_epoch; }
  uint64_t EpochUpdate(uint32_t epoch) const { return options_.updates.UpdatesAt(EpochSteps(epoch)); }  // its last
  uint32_t EpochOfRow(uint64_t row) const;  // rows count from 1

 private:
  Options options_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_SCHEDULE_H_
