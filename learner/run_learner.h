// The life of a learner process: it opens the run's folder, continues from the newest checkpoint, serves, trains and
// stops.
#ifndef DATACOM_LEARNER_RUN_LEARNER_H_
#define DATACOM_LEARNER_RUN_LEARNER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/channel.h"
#include "common/rpc/replay_client.h"
#include "common/rpc/role_flags.h"
#include "common/safety/known_rows.h"
#include "common/tasks/task.h"
#include "learner/algorithms/algorithm.h"
#include "learner/ledger_recorder.h"
#include "learner/run_settings.h"
#include "learner/trainer.h"

namespace datacom::learner {

struct ProcessOptions : RoleFlags {
  RunSettings settings;       // from a validated experiment
  AlgorithmConfig algorithm;  // without `alive`
  KnownRows known;
  std::string run_dir;
  ServerOptions server;      // transport security and the health port without TLS
  bool must_resume = false;  // --resume: it is an error if there is no checkpoint
};

// The parts that tests replace: the replay, the algorithm and the signal to stop.
struct ProcessSeams {
  std::function<std::unique_ptr<DrawStream>(uint64_t schema_fingerprint, uint32_t incarnation, uint64_t replay_start)>
      open_draws;
  RowSource read_rows;
  // Tells the replay that the run is finished (proto Finish); asked again while it answers UNAVAILABLE or
  // DEADLINE_EXCEEDED. Null: there is nobody to tell.
  std::function<absl::Status(uint64_t completed_update, uint32_t incarnation)> finish_run;
  std::function<std::unique_ptr<Algorithm>(const AlgorithmConfig&)> make_algorithm;  // may throw
  Trainer::WaitForStop wait_for_stop;
  std::function<void()> alive;  // AlgorithmConfig::alive
};

// Blocks for the whole run. OK: the run is complete. CANCELLED: interrupted, and a checkpoint is written.
absl::Status RunLearner(const ProcessOptions& options, const TaskModel& task, const ProcessSeams& seams);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_RUN_LEARNER_H_
// SPDX-License-Identifier: Apache-2.0
