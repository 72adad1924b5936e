// The run folder as `train` uses it: its name, its lock, the experiment and the run's identity.
//
// The functions block on the disk. They are not thread-safe for one folder; RunLock keeps other processes out.
#ifndef DATACOM_DEPLOY_CLI_RUN_FOLDER_H_
#define DATACOM_DEPLOY_CLI_RUN_FOLDER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/cli/train_plan.h"

namespace datacom::cli {

// runs/<experiment with "-" for "/">-<n>: the one after the last that exists or, for a resume, that one. Numbers may be
// missing. INVALID_ARGUMENT when there is none to resume.
absl::StatusOr<std::string> DefaultRunFolder(const std::string& experiment_name, bool resume);

// The last name of a folder's path, also of "." and with a slash at its end; empty for the root.
std::string FolderName(const std::string& folder);

// Exclusive ownership of a run folder, released with the object or the process.
class RunLock {
 public:
  // INVALID_ARGUMENT when another `train` uses the folder (waits up to `patience`, at most 2 s). Processes of a killed
  // `train` may still be ending: waits for them up to `patience`, then returns FAILED_PRECONDITION.
  static absl::StatusOr<std::unique_ptr<RunLock>> Take(const std::string& run_dir, std::chrono::milliseconds patience);
  ~RunLock();

 private:
  RunLock() = default;
  int train_ = -1;  // closed in children
  int roles_ = -1;  // inherited by the roles: locked until the last of them has ended
};

// INVALID_ARGUMENT, saying what to type instead, when the folder is a sweep's, when it is not empty and `resume` is
// false, or when it has nothing to resume. The errors of CheckNoLinks (common/records/checkpoint.h).
// A folder without experiment.textproto counts as empty: its start was killed before it wrote that file.
absl::Status CheckRunFolder(const std::string& run_dir, bool resume);

// Whether the folder holds nothing but what PrepareRunFolder and RunLock make before experiment.textproto exists. A
// start asks again when it has the lock: another `train` may have begun a run there meanwhile.
bool HoldsNoRun(const std::string& run_dir);

// Of the run's checkpoints (common/records/checkpoint.h).
std::optional<uint64_t> NewestCheckpoint(const std::string& run_dir);

// DATA_LOSS naming what is missing for a resume: there is a checkpoint but no replay rings or records, or the records
// show updates but there is no checkpoint. The learner writes its first checkpoint before its first update, and the
// rings and records exist by then, so a run killed at any moment passes. Call it only while holding the lock.
absl::Status CheckStateKept(const std::string& run_dir, int members);

// What the learner checks later, before anything changes: the newest sound checkpoint is one of this run, whose
// resolved experiment is given, and all records up to it are those that it names. DATA_LOSS naming the file, or the
// errors of CheckResume. Returns the start of the replay that the checkpoint names; 0 without one.
absl::StatusOr<uint64_t> CheckRecords(const std::string& run_dir, const v1::Experiment& resolved);

// Gives each file that a resume writes in place and that has another name (a hard link, as `cp -al` makes) a content of
// its own, so that no other copy of the run changes. Call it only while holding the lock.
absl::Status UnshareFiles(const std::string& run_dir);

// Makes the sub-folders, writes `experiment`, a text, to experiment.textproto (always) and run_id (once). Returns the
// run id.
absl::StatusOr<std::string> PrepareRunFolder(const std::string& run_dir, const std::string& experiment);

// cluster/layout: the number of actors and the environments of each, which a resume keeps. Nothing when the file is
// missing or unreadable, as in a run of an older build.
absl::Status WriteLayout(const std::string& run_dir, const Layout& layout);
std::optional<Layout> ReadLayout(const std::string& run_dir);

// Empties the folder after a start that stored nothing; also removes the folder itself when `remove_folder`.
void ClearRunFolder(const std::string& run_dir, bool remove_folder);

std::string ExperimentFile(const std::string& run_dir);
// cluster/<process>.<kind>, where kind is "address" or "metrics".
std::string AddressFile(const std::string& run_dir, const std::string& process, const std::string& kind);
// The trimmed content of that file; empty when there is none.
std::string ReadAddress(const std::string& run_dir, const std::string& process, const std::string& kind);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_RUN_FOLDER_H_
// SPDX-License-Identifier: Apache-2.0
