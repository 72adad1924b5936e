// The samples-per-insert limiter: how many rows a run may have after a number of updates. A value type; pure functions
// of the experiment. Updates are numbered from 1, rows from 0.
#ifndef DATACOM_REPLAY_LIMITER_H_
#define DATACOM_REPLAY_LIMITER_H_

#include <algorithm>
#include <cstdint>

#include "common/transitions/update_schedule.h"

namespace datacom::replay {

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
  // never fewer than the next update needs, never more than env_steps. With one policy for each row: the rows before
  // update completed + 1, no more.
  uint64_t Allowed(uint64_t completed) const {
    const UpdateSchedule& schedule = options_.schedule;
    // After the last update nothing depends on the number of rows: allow all that remain.
    if (completed >= schedule.LastUpdate()) return schedule.env_steps;
    const uint64_t rows = schedule.RowsSeen(completed + 1);
    if (one_policy()) return rows;
    const uint64_t ahead = schedule.min_size + options_.tolerance + schedule.WholeRows(completed);
    return std::min(std::max(rows, ahead), schedule.env_steps);
  }

  // Oldest policy, as the update of its snapshot, that may produce row `row` when it is granted now. With one
  // policy for each row it is the policy of the newest update that needs no row from `row` on. It then follows from the
  // row, so a replay or a learner that starts again asks for the same policy.
  uint64_t MinPolicyUpdate(uint64_t row, uint64_t completed) const {
    if (one_policy()) return LastUpdateBefore(row);
    return completed > options_.max_policy_lag ? completed - options_.max_policy_lag : 0;
  }

  // First row after `row` that needs a different policy than `row`; in lockstep a grant ends before it.
  uint64_t PolicyChange(uint64_t row) const {
    const uint64_t next = LastUpdateBefore(row) + 1;
    return next > options_.schedule.LastUpdate() ? options_.schedule.env_steps : options_.schedule.RowsSeen(next);
  }

  // Whether exactly one policy may produce a row: in lockstep and with max_policy_lag 0. Rows of a later policy are
  // then not granted before that policy exists.
  bool one_policy() const { return options_.lockstep || options_.max_policy_lag == 0; }
  const Options& options() const { return options_; }
  const UpdateSchedule& schedule() const { return options_.schedule; }

 private:
  // The number of updates that need no row from `row` on.
  uint64_t LastUpdateBefore(uint64_t row) const {
    return std::min(options_.schedule.LastUpdate(), options_.schedule.UpdatesAt(row));
  }

  const Options options_;
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_LIMITER_H_
// SPDX-License-Identifier: Apache-2.0
