// When updates and epochs happen: plain arithmetic on the experiment's numbers. Immutable value; thread-safe.
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
  // Epochs 0 .. last_epoch() end; the last one early when the run ends inside it.
  uint32_t last_epoch() const;
  uint64_t EpochSteps(uint32_t epoch) const;  // environment steps at its end
  bool EndsEarly(uint32_t epoch) const { return EpochSteps(epoch) < epoch * options_.steps_per_epoch; }
  uint64_t EpochUpdate(uint32_t epoch) const { return options_.updates.UpdatesAt(EpochSteps(epoch)); }  // ends it
  uint32_t EpochOfRow(uint64_t row) const;  // row counts from 1

 private:
  Options options_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_SCHEDULE_H_
