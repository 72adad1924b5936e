// How far the runs of a sweep are: from their folders and, where the sweep was written for Slurm, from its queue.
//
// Blocks on the disk and on `squeue`, at most a few seconds. Thread-safe.
#ifndef DATACOM_DEPLOY_CLI_SWEEP_STATUS_H_
#define DATACOM_DEPLOY_CLI_SWEEP_STATUS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace datacom::cli {

// What the queue says of a run, by the number of its line in jobs.txt (the first is 0).
using QueueStates = std::map<size_t, std::string>;

// Reads the output of `squeue --array --noheader --format '%o|%K|%T|%r|%N|%M'`: the tasks of the scripts in `folder`,
// an absolute path. `array_size`: runs of each script (WriteSlurmScripts).
QueueStates ParseQueue(const std::string& text, const std::string& folder, size_t array_size);

// Prints a line of totals and a line per run on standard output. INVALID_ARGUMENT when the folder is no sweep's.
absl::Status PrintSweepStatus(const std::string& folder);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_SWEEP_STATUS_H_
// SPDX-License-Identifier: Apache-2.0
