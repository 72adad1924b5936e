#include "replay/limiter.h"

#include <algorithm>

namespace datacom::replay {

uint64_t Limiter::Allowed(uint64_t completed) const {
  const UpdateSchedule& schedule = options_.schedule;
  // After the last update nothing depends on the number of rows: allow all that remain.
  if (completed >= schedule.LastUpdate()) return schedule.env_steps;
  const uint64_t rows = schedule.RowsSeen(completed + 1);
  if (one_policy()) return rows;
  const uint64_t ahead = schedule.min_size + options_.tolerance + schedule.WholeRows(completed);
  return std::min(std::max(rows, ahead), schedule.env_steps);
}

uint64_t Limiter::LastUpdateBefore(uint64_t row) const {
  return std::min(options_.schedule.LastUpdate(), options_.schedule.UpdatesAt(row));
}

uint64_t Limiter::MinPolicyUpdate(uint64_t row, uint64_t completed) const {
  if (one_policy()) return LastUpdateBefore(row);
  return completed > options_.max_policy_lag ? completed - options_.max_policy_lag : 0;
}

uint64_t Limiter::PolicyChange(uint64_t row) const {
  const uint64_t next = LastUpdateBefore(row) + 1;
  return next > options_.schedule.LastUpdate() ? options_.schedule.env_steps : options_.schedule.RowsSeen(next);
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
