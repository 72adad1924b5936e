// When updates and epochs happen: plain arithmetic on the experiment's numbers (architecture.md, "Time" and "A draw is
// a pure function"). Immutable value; thread-safe.
#ifndef DATACOM_LEARNER_SCHEDULE_H_
#define DATACOM_LEARNER_SCHEDULE_H_

#include <cstdint>

#include "datacom/v1/experiment.pb.h"

namespace datacom::learner {

class Schedule {
 public:
  struct Options {
    double updates_per_step = 1;  // UTD
    uint64_t min_size = 0;        // rows before the first update
    uint64_t steps_per_epoch = 1;
    uint64_t env_steps = 0;  // of the run, per member
  };
  explicit Schedule(const Options& options) : options_(options) {}
  static Schedule Of(const v1::Experiment& resolved);

  // floor(UTD (env_steps - min_size)): the run's last update; 0 when it never trains.
  uint64_t last_update() const { return UpdatesAt(options_.env_steps); }
  // n(u) = min_size + ceil(u / UTD), limited by env_steps: rows of a member that update u may look at.
  uint64_t RowsSeen(uint64_t update) const;
  // Epochs 0 .. last_epoch() end; the last one early when the run ends inside it.
  uint32_t last_epoch() const;
  uint64_t EpochSteps(uint32_t epoch) const;                                           // environment steps at its end
  uint64_t EpochUpdate(uint32_t epoch) const { return UpdatesAt(EpochSteps(epoch)); }  // update after which it ends
  uint32_t EpochOfRow(uint64_t row) const;                                             // row counts from 1
  uint64_t min_size() const { return options_.min_size; }

 private:
  uint64_t UpdatesAt(uint64_t steps) const;
  Options options_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_SCHEDULE_H_
