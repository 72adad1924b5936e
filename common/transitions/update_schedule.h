// The updates of a run and how many rows each may use (docs/algorithms.md 1.2). Replay and learner must agree
// on this arithmetic. Rows of a member are counted from the start of the run, updates from 1. A value type; pure
// functions.
#ifndef DATACOM_COMMON_TRANSITIONS_UPDATE_SCHEDULE_H_
#define DATACOM_COMMON_TRANSITIONS_UPDATE_SCHEDULE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace datacom {

struct UpdateSchedule {
  uint64_t env_steps = 0;       // rows of a member in the whole run
  uint64_t min_size = 0;        // rows before the rows of the first update
  double updates_per_step = 1;  // UTD

  // Rows per `updates` updates, rounded down and up. Ratios such as 1 / 0.1 or 10 x 0.7 are not exact in binary, so an
  // excess of kRounding does not count as a row.
  uint64_t WholeRows(uint64_t updates) const { return Floor(updates / static_cast<long double>(updates_per_step)); }
  uint64_t StartedRows(uint64_t updates) const {
    return static_cast<uint64_t>(std::ceil(updates / static_cast<long double>(updates_per_step) - kRounding));
  }
  // n(u) = min_size + ceil(u / UTD), limited by env_steps: the rows that update u may use.
  uint64_t RowsSeen(uint64_t update) const { return std::min(env_steps, min_size + StartedRows(update)); }
  // floor(UTD (rows - min_size)): the number of updates that need at most `rows` rows.
  uint64_t UpdatesAt(uint64_t rows) const {
    return rows <= min_size ? 0 : Floor(static_cast<long double>(updates_per_step) * (rows - min_size));
  }
  // The run's last update; 0 when it never trains.
  uint64_t LastUpdate() const { return UpdatesAt(env_steps); }

 private:
  static constexpr long double kRounding = 1e-9L;
  static uint64_t Floor(long double value) { return static_cast<uint64_t>(std::floor(value + kRounding)); }
};

}  // namespace datacom

#endif  // DATACOM_COMMON_TRANSITIONS_UPDATE_SCHEDULE_H_
// SPDX-License-Identifier: Apache-2.0
