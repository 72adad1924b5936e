// Writes the runs of a sweep, or a single run, for schedulers of batch jobs: a list with one command per line, and
// scripts for Slurm's sbatch (deploy/slurm/*.in). Every command resumes its run and exits with 75 when it was
// interrupted, so a scheduler may start it any number of times.
//
// The functions block on the disk. The same input gives the same files, apart from certificates.
#ifndef DATACOM_DEPLOY_CLI_BATCH_H_
#define DATACOM_DEPLOY_CLI_BATCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/cli/sweep.h"
#include "deploy/cli/train_plan.h"

namespace datacom::cli {

// Set in every run for Slurm. A node that fails takes the rows with it that its page cache holds, and a run whose rows
// are older than its checkpoint cannot resume.
inline constexpr char kSlurmSetting[] = "replay.sync=true";

inline constexpr char kLocal[] = "local", kKubernetes[] = "kubernetes", kSlurm[] = "slurm", kList[] = "list";

// The options of the other backends than local, as they were typed.
struct BatchOptions {
  std::string program;        // starts this command on a node; empty: this program
  std::string sbatch;         // options of sbatch, separated by spaces
  int join = 0;               // actors in jobs of their own
  ManifestOptions manifests;  // images, plain, pods, tls_secret, archive_secret
};

// INVALID_ARGUMENT, saying what to do instead, for an option that the backend cannot follow.
absl::Status CheckBackend(const std::string& backend, const BatchOptions& batch, const TrainOptions& options);

// The arguments of `datacom` that start or resume one run, and the command that does so on any node.
std::vector<std::string> TrainWords(const TrainOptions& options, const std::string& run_dir, uint64_t steps);
std::string TrainCommand(const BatchOptions& batch, const TrainOptions& options, const std::string& run_dir,
                         uint64_t steps);

struct SlurmJob {
  std::string verb;           // that was typed: "sweep" or "train"
  std::string name;           // of the sweep or the experiment; in a cluster every object has it as prefix
  int at_once = 0;            // populations that train at a time; 0: as many as the cluster has room for
  int max_array_size = 1001;  // slurm.conf's MaxArraySize: an index is below it
};

// MaxArraySize as `scontrol` reports it; Slurm's default where there is no scontrol.
int MaxArraySize();

// INVALID_ARGUMENT for a folder whose absolute path has characters that Slurm would interpret, and where no image has
// what an experiment needs.
absl::Status CheckBatch(const std::string& backend, const std::string& dir, const TrainOptions& options,
                        const std::vector<SweepRun>& populations);

// Writes what the backend, not kLocal, needs to train the runs, and says how to start and follow them. job: without
// max_array_size, which is that of this cluster. REQUIRES CheckBatch.
absl::Status WriteBatch(const std::string& backend, const std::string& dir, SlurmJob job, const BatchOptions& batch,
                        const TrainOptions& options, const std::vector<SweepRun>& populations);

// Writes <dir>/jobs.txt, <dir>/NAME.sbatch (NAME is the verb; sweeps that exceed an array get further files) and, with
// batch.join, actors.sbatch and the certificates of <dir>/tls. Returns the absolute paths of the scripts in the order
// in which they are submitted. REQUIRES CheckBatch.
absl::StatusOr<std::vector<std::string>> WriteSlurmScripts(const std::string& dir, const SlurmJob& job,
                                                           const BatchOptions& batch, const TrainOptions& options,
                                                           const std::vector<SweepRun>& populations);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_BATCH_H_
// SPDX-License-Identifier: Apache-2.0
