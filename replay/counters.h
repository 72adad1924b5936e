// Counts what a replay does, and gives its state in numbers, for metrics and Info. Not thread-safe (the store's mutex
// guards it); blocks nowhere.
#ifndef DATACOM_REPLAY_COUNTERS_H_
#define DATACOM_REPLAY_COUNTERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/rate_meter.h"
#include "datacom/v1/replay.pb.h"
#include "replay/draws.h"
#include "replay/tables.h"

namespace datacom::replay {

// Values for metrics: totals since this process started (finished episodes: since the run began), then current values.
struct StoreCounters {
  uint64_t inserted = 0, duplicates = 0;
  uint64_t rejected_invalid = 0, rejected_gap = 0, rejected_credit = 0;
  uint64_t draws = 0;
  uint64_t finished_episodes = 0, abandoned_episodes = 0;
  uint64_t held = 0, failures = 0, outstanding = 0, sessions = 0;  // rows of all members; living sessions
  double ratio_error = 0;      // largest |updates done / updates whose rows are there - 1| of a member
  bool actors_wait = false;    // a connected actor has used all its credit
  bool learner_waits = false;  // the newest draw lacked rows
};

class Statistics {
 public:
  Statistics(uint32_t members, const Clock* clock);

  void CountInserted(uint64_t rows) { totals_.inserted += rows; }
  void CountDuplicates(uint32_t member, uint64_t rows);
  // A chunk that was refused: OUT_OF_RANGE for a gap, RESOURCE_EXHAUSTED for missing credit, else invalid.
  void CountRejected(const v1::Chunk& chunk, absl::StatusCode why);
  void Tick() { rows_rate_.Add(static_cast<double>(totals_.inserted)); }

  StoreCounters Counters(const Tables& tables, const Draws& draws) const;
  // The run's numbers, its members and its sessions; without its names and its waits.
  void Fill(const Tables& tables, const Draws& draws, v1::ReplayInfo* info) const;

 private:
  const Clock* const clock_;
  const Clock::Time started_;
  StoreCounters totals_;                         // only those that are counted here
  std::vector<uint64_t> rejected_, duplicates_;  // rows, per member
  RateMeter rows_rate_;
};

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_COUNTERS_H_
// SPDX-License-Identifier: Apache-2.0
