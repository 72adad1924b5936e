// How many rows and updates a run may have at any time: the samples-per-insert limiter as arithmetic. A value type;
// pure functions of the experiment. Rows are counted, updates count from 1.
#ifndef DATACOM_REPLAY_LIMITER_H_
#define DATACOM_REPLAY_LIMITER_H_

#include <cstdint>

#include "common/rows/update_schedule.h"

namespace datacom {

class Limiter {
 public:
  struct Options {
    UpdateSchedule schedule;
    uint64_t tolerance = 16;        // rows the actors may run ahead
    uint64_t max_policy_lag = 128;  // updates
    bool lockstep = false;
  };
  explicit Limiter(const Options& options) : options_(options) {}

  // Rows that may be inserted or outstanding once `completed` updates are done: min_size + tolerance + completed / UTD,
  // never fewer than the next update needs, never more than env_steps. Lockstep: the rows before update completed + 1,
  // no more.
  uint64_t Allowed(uint64_t completed) const;
  // Of a row granted now. `row` is its number from 0.
  uint64_t MinPolicyUpdate(uint64_t row, uint64_t completed) const;
  // First row (from 0) at or after `row` that needs another policy than `row` does; in lockstep a grant must end there.
  uint64_t PolicyChange(uint64_t row) const;
  const Options& options() const { return options_; }
  const UpdateSchedule& schedule() const { return options_.schedule; }

 private:
  uint64_t LastUpdateBefore(uint64_t row) const;  // the updates done before row `row` (from 0) is made, in lockstep
  const Options options_;
};

}  // namespace datacom

#endif  // DATACOM_REPLAY_LIMITER_H_
