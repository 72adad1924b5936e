// The folder of a sweep: `sweep.textproto`, `populations.txt` (the run folders in order, one per line) and, in each run
// folder, the population's experiment, so that `train --resume` starts or resumes it.
//
// The functions block on the disk. One process per folder may call them (FolderLock).
#ifndef DATACOM_DEPLOY_CLI_SWEEP_FOLDER_H_
#define DATACOM_DEPLOY_CLI_SWEEP_FOLDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/cli/sweep_plan.h"

namespace datacom::cli {

std::string RunFolder(const std::string& dir, const SweepRun& population);
// The run folders that `folder` stands for: those of a sweep in their order, or `folder` itself where it is a run's.
// INVALID_ARGUMENT for any other folder.
absl::StatusOr<std::vector<std::string>> RunsOfFolder(const std::string& folder);
bool IsSweepFolder(const std::string& folder);

// INVALID_ARGUMENT naming the difference when the folder holds another sweep. Only descriptions and run.env_steps may
// differ, and run.env_steps may not be less than what a member has already made.
absl::Status CheckSweepFolder(const std::string& dir, const std::vector<SweepRun>& populations);

// Writes the files that the folder does not have yet.
absl::Status PrepareSweepFolder(const std::string& dir, const v1::Sweep& sweep,
                                const std::vector<SweepRun>& populations);

struct RunState {
  uint64_t env_steps = 0;  // fewest of any member
  bool complete = false;   // every member has its last row, and `train` has written its report
};
RunState ReadRunState(const std::string& run_dir, const v1::Experiment& experiment);

// Updates per second, over all members, in the newest run of the same task and algorithm. Looks at the runs of this
// sweep and at those in its parent folder.
struct MeasuredRate {
  double updates_per_second = 0;
  std::string folder;
};
std::optional<MeasuredRate> FindRate(const std::string& dir, const v1::Experiment& experiment);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_SWEEP_FOLDER_H_
// SPDX-License-Identifier: Apache-2.0
