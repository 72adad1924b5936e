// A learner process from flags to exit: makes the parts, continues from the newest checkpoint, serves, trains, leaves.
#ifndef DATACOM_LEARNER_RUN_LEARNER_H_
#define DATACOM_LEARNER_RUN_LEARNER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/channel.h"
#include "common/rpc/replay_client.h"
#include "common/tasks/task.h"
#include "datacom/v1/experiment.pb.h"
#include "learner/algorithms/algorithm.h"
#include "learner/ledger_recorder.h"

namespace datacom::learner {

struct ProcessOptions {
  v1::Experiment experiment;  // resolved and validated
  std::string run_id, run_dir;
  std::string listen = "127.0.0.1:0", address_file;
  ServerOptions server;                              // transport security, and the plain health port
  std::string metrics_listen, metrics_address_file;  // empty: no /metrics
  bool must_resume = false;                          // --resume: without a checkpoint this is an error
};

// What tests replace.
struct ProcessSeams {
  std::function<std::unique_ptr<DrawStream>(uint64_t schema_fingerprint)> open_draws;
  RowSource read_rows;
  std::function<std::unique_ptr<Algorithm>(const AlgorithmConfig&)> make_algorithm;  // may throw
  std::function<bool(std::chrono::milliseconds)> wait_for_stop;
};

// OK: the run is complete. CANCELLED: interrupted, a checkpoint is written. Blocks for the whole run.
absl::Status RunLearner(const ProcessOptions& options, const TaskModel& task, const ProcessSeams& seams);

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_RUN_LEARNER_H_
