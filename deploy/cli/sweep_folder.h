// The folder of a sweep: `sweep.textproto`, `populations.txt` (the run folders, one a line, in order) and in each run
// folder the population's experiment, so that `train --resume` begins or goes on.
//
// Functions block on the disk. One process a folder (FolderLock).
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

std::string RunFolder(const std::string& dir, const Population& population);

// INVALID_ARGUMENT naming what differs when the folder holds another sweep; only run.env_steps may have changed, and
// to no less than what a member has made.
absl::Status CheckSweepFolder(const std::string& dir, const std::vector<Population>& populations);

// Writes what the folder has not yet.
absl::Status PrepareSweepFolder(const std::string& dir, const v1::Sweep& sweep,
                                const std::vector<Population>& populations);

struct RunState {
  uint64_t env_steps = 0;  // fewest of any member
  bool complete = false;   // every member's last row, and the report that `train` leaves at the end
};
RunState ReadRunState(const std::string& run_dir, const v1::Experiment& experiment);

// Updates a second of all members together, in the newest run of the same task and algorithm: of this sweep or beside
// its folder.
struct MeasuredRate {
  double updates_per_second = 0;
  std::string folder;
};
std::optional<MeasuredRate> FindRate(const std::string& dir, const v1::Experiment& experiment);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_SWEEP_FOLDER_H_
