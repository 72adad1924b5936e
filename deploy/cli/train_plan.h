// What a `train` command line means before anything starts: the resolved experiment, how many environments step, and
// what the run will need of disk and memory. Pure functions but for reading the experiment file.
#ifndef DATACOM_DEPLOY_CLI_TRAIN_PLAN_H_
#define DATACOM_DEPLOY_CLI_TRAIN_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom::cli {

// As typed; zero or empty = not given.
struct TrainOptions {
  std::string experiment;
  std::string seeds;
  uint64_t steps = 0;
  int actors = 0;
  int environments = 0;
  std::vector<std::string> overrides;
  std::string run_dir;
  bool lockstep = false;
  bool resume = false;
  std::string device;
  double max_hours = 0;
  bool quiet = false;
  std::string tls;  // folder of LoadSecurity
};

// The experiment a command means: the named file, or for a resume `stored` (that of the run folder), with everything
// that was typed applied; validated and resolved. A resume may change run.env_steps only: whatever was typed beside it
// must say what the run already does, else INVALID_ARGUMENT names the field and both values.
absl::StatusOr<v1::Experiment> PlanExperiment(const TrainOptions& options);
absl::StatusOr<v1::Experiment> PlanResume(const TrainOptions& options, const v1::Experiment& stored);

struct Layout {
  int actors = 1;
  int environments = 1;  // of each actor
  std::string note;      // said to the user when it differs from what was asked
};
// One lane (environment) for each member unless --envs asks for more: one core steps faster than a learner core learns.
// A multiple of the members where they fit into one actor; lockstep: exactly one actor with one lane for each member.
absl::StatusOr<Layout> PlanLayout(const TrainOptions& options, const v1::Experiment& resolved);

struct Needs {
  uint64_t ring_bytes = 0;        // replay/, allocated at the start
  uint64_t policy_bytes = 0;      // policies/, all epochs
  uint64_t checkpoint_bytes = 0;  // checkpoints/, three at a time
  uint64_t ledger_bytes = 0;      // ledger/, the steps; a violation takes some hundred bytes more
  uint64_t replay_memory_bytes = 0, learner_memory_bytes = 0, actor_memory_bytes = 0;  // resident, of one process
  uint64_t memory_bytes = 0;                                                           // of all, the evaluator included
  uint64_t disk_bytes() const { return ring_bytes + policy_bytes + checkpoint_bytes + ledger_bytes; }
};
absl::StatusOr<Needs> EstimateNeeds(const v1::Experiment& resolved, const Layout& layout);

// RESOURCE_EXHAUSTED with the numbers when the file system of `run_dir` or the memory is too small. Bytes already in
// the run folder (a resume) count as free.
absl::Status CheckResources(const Needs& needs, const std::string& run_dir);

// "1.2 GB".
std::string FormatBytes(uint64_t bytes);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_TRAIN_PLAN_H_
