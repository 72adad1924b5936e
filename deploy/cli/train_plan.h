// Plans a run from the `train` command line before anything starts: the resolved experiment, the number of
// environments, the disk space and memory it needs. The functions read files and are otherwise pure.
#ifndef DATACOM_DEPLOY_CLI_TRAIN_PLAN_H_
#define DATACOM_DEPLOY_CLI_TRAIN_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/stall.h"

namespace datacom::v1 {
class Experiment;
}

namespace datacom::cli {

// The options as given; zero or empty = not given.
struct TrainOptions {
  std::string experiment;  // with `algorithm`: the task
  std::string algorithm;
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
  double stall_minutes = kStallMinutes;
  bool quiet = false;
  bool json = false;  // lines for programs
  bool no_film = false;
  bool network = false;  // roles on several machines: UseNetworkSchedule
  std::string archive;   // place of deploy/tools/archive/archive.h; empty: none
  std::string tls;       // folder of LoadSecurity
  std::string host;      // where the roles listen, a name or an address; empty: loopback
};

// " --plugin FILE" for each plug-in of this command, by absolute path; empty without any.
std::string PluginOptions();
// Adds the plug-ins that are loaded to those that the experiment needs.
void NamePlugins(v1::Experiment* experiment);

// The command that resumes a run without a change, for a shell.
std::string ResumeCommand(const std::string& run_dir, const v1::Experiment& experiment);

// The experiment that the command names, or the experiment of its task and algorithm, without the given options.
absl::StatusOr<v1::Experiment> NamedExperiment(const TrainOptions& options);

// The validated and resolved experiment of a command: the named file, or for a resume `stored` (from the run
// folder that `options` names), with the given options applied. A resume may change only kFreeOnResume
// (common/config/experiment.h): every other option must equal what the run has, or INVALID_ARGUMENT names the field,
// both values and the command that resumes.
absl::StatusOr<v1::Experiment> PlanExperiment(const TrainOptions& options);
absl::StatusOr<v1::Experiment> PlanResume(const TrainOptions& options, const v1::Experiment& stored);

// What a resume with more steps will replace, and what keeps it: the policies of the epoch that the former end cut
// short. Empty if the run has none. REQUIRES an `after` that PlanResume has made of `before`.
std::string ReplacedPolicyNote(const std::string& run_dir, const v1::Experiment& before, const v1::Experiment& after);

// What a Python environment states, then sentences about settings that probably do not do what the user expects, and
// what to type instead, and about those that nothing reads. REQUIRES an experiment that PlanExperiment has made.
std::vector<std::string> PlanNotes(const v1::Experiment& resolved);

// The schema's defaults are for one machine; over a network messages are fewer and larger. What the experiment sets and
// what its algorithm has as its own default stays.
void UseNetworkSchedule(v1::Experiment* experiment);

struct Layout {
  int actors = 1;
  int environments = 1;   // environments per actor
  std::string note = {};  // tells the user when the layout is not what was asked for
};
// One lane (environment) per member unless --envs asks for more: one core steps faster than a learner core learns.
// A multiple of the members when they fit into one actor. Lockstep: exactly one actor with one lane per member.
absl::StatusOr<Layout> PlanLayout(const TrainOptions& options, const v1::Experiment& resolved);

struct Needs {
  uint64_t ring_bytes = 0;        // replay/, allocated at the start
  uint64_t policy_bytes = 0;      // policies/, all epochs
  uint64_t checkpoint_bytes = 0;  // checkpoints/, three at a time
  uint64_t ledger_bytes = 0;      // ledger/, its steps; a violation adds a few hundred bytes
  uint64_t replay_memory_bytes = 0, learner_memory_bytes = 0;  // resident
  uint64_t actor_memory_bytes = 0;                             // one actor's, while it is the only one
  uint64_t largest_file_bytes = 0;                             // a member's ring
  uint64_t memory_bytes = 0;  // all processes together, the evaluator included, while each actor has its share
  uint64_t disk_bytes() const { return ring_bytes + policy_bytes + checkpoint_bytes + ledger_bytes; }
};
absl::StatusOr<Needs> EstimateNeeds(const v1::Experiment& resolved, const Layout& layout);

// RESOURCE_EXHAUSTED with the numbers when the disk of `run_dir`, the memory or a limit of this process is too small.
// Bytes already in the run folder (of a resumed run) count as free.
absl::Status CheckResources(const Needs& needs, const std::string& run_dir);
uint64_t FolderBytes(const std::string& folder);  // of its files

// What a scheduler is asked for: whole mebibytes, with a margin of a quarter.
uint64_t MebibytesFor(uint64_t bytes);

// "1.2 GB".
std::string FormatBytes(uint64_t bytes);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_TRAIN_PLAN_H_
// SPDX-License-Identifier: Apache-2.0
