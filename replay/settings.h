// The settings of a replay, and where an experiment has them. Thread-safe; ReadExperiment blocks on the disk.
#ifndef DATACOM_REPLAY_SETTINGS_H_
#define DATACOM_REPLAY_SETTINGS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/transitions/replay_layout.h"
#include "common/transitions/row_schema.h"
#include "replay/limiter.h"

namespace datacom::v1 {
class Experiment;
}

namespace datacom::replay {

// A value type.
struct Options {
  struct Member {
    uint64_t seed = 0;
    bool episode_rows = false;  // episodes carry observations and costs, if last_row - 1 exceeds delta_warmup
    uint64_t delta_warmup = 0;
  };

  std::string folder;
  std::string run_id;
  uint64_t start = 1;             // number of this start (replay/starts.h)
  uint64_t checkpoint_start = 0;  // that the learner's newest checkpoint names; 0: not known, or none
  std::string task, algorithm;    // their names, for Store::Info
  std::string experiment_text;    // sent to actors
  std::vector<Member> members;
  Limiter::Options limits;
  ReplayLayout layout;  // of a member's rings; they take env_steps from `limits`, row_bytes from the schema
  uint32_t batch = 0, failure_batch = 0;  // rows of a draw
  bool new_rows = false;                  // draws hold all new rows instead of a sample (AlgorithmInfo)
  uint32_t horizon = 0;                   // steps of an episode; 0: not known
  double discount = 0.99;  // weight of a row's reward in J, relative to the row before (DiscountOfReturns)
  uint64_t run_seed = 0;
  bool end_with_run = false;  // the replay ends when the learner has finished the run; a file remembers that
  bool sync = false;          // acknowledged rows survive a loss of power
  Clock::Time::duration lease = std::chrono::seconds(30);
  const Clock* clock = &Clock::Real();
};

// Resolved and validated.
absl::StatusOr<v1::Experiment> ReadExperiment(const std::string& path);
struct ReplaySetup {
  RowSchema schema;
  Options options;  // all but folder, run id, lease and clock
};
absl::StatusOr<ReplaySetup> SetUp(const v1::Experiment& resolved);

}  // namespace datacom::replay

#endif  // DATACOM_REPLAY_SETTINGS_H_
// SPDX-License-Identifier: Apache-2.0
