// Sweeps: their populations, their folders, how far they are, and their manifests for Kubernetes.
//
// Apart from reading files the expansion is a pure function: the same sweep and experiments give the same populations,
// in the same order and under the same names, so that an interrupted sweep finds its run folders again. The other
// functions block on the disk, PrintSweepStatus also on `squeue`, for at most a few seconds. Thread-safe, but only one
// process per folder may write there (FolderLock).
#ifndef DATACOM_DEPLOY_CLI_SWEEP_H_
#define DATACOM_DEPLOY_CLI_SWEEP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "datacom/v1/experiment.pb.h"
#include "datacom/v1/sweep.pb.h"
#include "deploy/cli/train_plan.h"
#include "nlohmann/json.hpp"

namespace datacom::cli {

// A sweep and the experiments that it names, in the same order.
struct SweepInput {
  std::string file;  // named in messages
  v1::Sweep sweep;
  std::vector<v1::Experiment> experiments;
  int actors = 0;        // per run; 0: the default of `train`
  int environments = 0;  // per actor; 0: the default of `train`
  bool network = false;  // the roles are on several machines: the schedule has the defaults for that
};

// The folder of the shipped sweeps: "sweeps", next to the experiments.
std::string SweepFolder();
// A name under SweepFolder or a path; experiments are found as `train` finds them. INVALID_ARGUMENT naming the file.
absl::StatusOr<SweepInput> LoadSweep(const std::string& name_or_path);

// One run of the sweep.
struct SweepRun {
  std::string name;           // name of its folder inside the sweep's folder
  v1::Experiment experiment;  // resolved and valid; every member has a label
  Needs needs;
};

// Populations are ordered by experiment, then by the points of the axes that set anything outside `hyper` (the first
// axis varies slowest). In each, members are ordered by the points of the other axes, then by seed. A population that
// exceeds the limits is split into parts whose sizes differ by at most one member. INVALID_ARGUMENT names the file, the
// axis and the point.
absl::StatusOr<std::vector<SweepRun>> ExpandSweep(const SweepInput& input);

// The folder of a sweep: `sweep.textproto`, `populations.txt` (the run folders in order, one per line) and, in each run
// folder, the population's experiment, so that `train --resume` starts or resumes it.
std::string RunFolder(const std::string& dir, const SweepRun& population);  // `dir` for a run without a name
// The archive of a run whose sweep has `place`; that itself for a run without a name.
std::string ArchiveOf(const std::string& place, const SweepRun& population);
// The run folders that `folder` stands for: those of a sweep in their order, or `folder` itself where it is a run's.
// INVALID_ARGUMENT for any other folder.
absl::StatusOr<std::vector<std::string>> RunsOfFolder(const std::string& folder);

// INVALID_ARGUMENT naming the difference when the folder holds another sweep. Only descriptions and run.env_steps may
// differ, and run.env_steps may not be less than what a member has already made.
absl::Status CheckSweepFolder(const std::string& dir, const std::vector<SweepRun>& populations);

// Writes the files that the folder does not have yet.
absl::Status PrepareSweepFolder(const std::string& dir, const v1::Sweep& sweep,
                                const std::vector<SweepRun>& populations);

struct RunState {
  uint64_t env_steps = 0;  // fewest of any member
  double done = 0;         // share of the run's steps
  bool complete = false;   // every member has its last row, and `train` has written its report
};
RunState ReadRunState(const std::string& run_dir, const v1::Experiment& experiment);
RunState ReadRunState(const std::string& run_dir);  // of its own experiment; nothing where it cannot be read

// Updates per second, over all members, in the newest run of the same task and algorithm. Looks at the runs of this
// sweep and at those in its parent folder.
struct MeasuredRate {
  double updates_per_second = 0;
  std::string folder;
};
std::optional<MeasuredRate> FindRate(const std::string& dir, const v1::Experiment& experiment);

// How far the runs of a sweep are: from their folders and, where the sweep was written for Slurm, from its queue.

// What the queue says of a run, by the number of its line in jobs.txt (the first is 0).
using QueueStates = std::map<size_t, std::string>;

// Reads the output of `squeue --array --noheader --format '%o|%K|%T|%r|%N|%M'`: the tasks of the scripts in `folder`,
// an absolute path. `array_size`: runs of each script (WriteSlurmScripts).
QueueStates ParseQueue(const std::string& text, const std::string& folder, size_t array_size);

// Prints a line of totals and a line per run on standard output, or with `json` SweepJson. INVALID_ARGUMENT when the
// folder is no sweep's.
absl::Status PrintSweepStatus(const std::string& folder, bool json = false);
// {"sweep": FOLDER, "populations": [...]}: what RecordedRunJson says of each, with "population", its name, and
// "detail".
absl::StatusOr<nlohmann::json> SweepJson(const std::string& folder);

bool UsesGpu(const SweepRun& population);

// Memory of rclone and of the copy to an archive, beside the run's own.
inline constexpr uint64_t kCopyBytes = 1ull << 28;

// A sweep as Kubernetes manifests: one JobSet (or its Jobs) per population, with volumes, from
// deploy/kubernetes/jobset.yaml.in, or with an archive, from archive.yaml.in; and one kustomization over all of them,
// with the experiments as ConfigMaps. The same populations give the same files.

// Turns a name into one that Kubernetes accepts for hosts: lower-case letters, digits and "-", a letter first, at most
// 40 characters (pods append to it). A longer name keeps its end, behind a checksum.
std::string ObjectName(const std::string& name);

// The content of a file of YAML with fields of a pod's spec (tolerations, priorityClassName, imagePullSecrets,
// nodeSelector), as lines of the template. INVALID_ARGUMENT, naming the line, for a field that datacom sets, and for
// what is no field. Blocks on the disk.
absl::StatusOr<std::string> PodFields(const std::string& file);

// INVALID_ARGUMENT unless it has the form HOST:PORT/PATH:TAG, of which all but one part may be absent.
absl::Status CheckImages(const std::string& images);

struct ManifestOptions {
  std::string sweep;           // prefix of every name: two sweeps in a cluster may have populations of the same name
  std::string images;          // registry of the images, "registry.example.org/team:tag"; empty: the nodes' default
  int actors = 1;              // per population
  int environments = 0;        // per actor; 0: the default of `train`
  std::string pods;            // file of PodFields, for every pod; empty: none
  std::string tls_secret;      // Secret with ca.crt, tls.crt, tls.key and token; empty: plain text
  bool plain = false;          // Jobs and Services, which need neither JobSet nor Kueue in the cluster
  std::string archive;         // bucket that keeps the runs; a run is then one pod. Empty: volumes keep them
  std::string archive_secret;  // Secret with the environment of rclone; empty: the bucket needs none
};

// Whether a ConfigMap holds the experiment with the large files of its model. If not, the population's learner needs
// them in a folder of its image or a volume, named in DATACOM_TASK_FILES.
bool FitsConfigMap(const v1::Experiment& experiment);
// Whether that ConfigMap is too large for `kubectl apply` without --server-side, which keeps a copy in an annotation.
bool NeedsServerSide(const v1::Experiment& experiment);

// Writes <dir>/<population>/{experiment.textproto,task_files,population.yaml} and <dir>/kustomization.yaml.
// INVALID_ARGUMENT when two populations would get the same name, or an experiment is too large for a ConfigMap, and for
// a wrong file of PodFields. A population without a name lies in `dir` itself.
absl::Status WriteManifests(const std::string& dir, const ManifestOptions& options,
                            const std::vector<SweepRun>& populations);
// The same, and says how to start them.
absl::Status WriteCluster(const std::string& dir, const ManifestOptions& options,
                          const std::vector<SweepRun>& populations);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_SWEEP_H_
// SPDX-License-Identifier: Apache-2.0
