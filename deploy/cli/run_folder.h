// The run folder as `train` sees it: its name, who owns it, the experiment and the run's identity.
//
// Functions block on the disk. Not thread-safe for one folder (that is what the lock is for).
#ifndef DATACOM_DEPLOY_CLI_RUN_FOLDER_H_
#define DATACOM_DEPLOY_CLI_RUN_FOLDER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "datacom/v1/experiment.pb.h"

namespace datacom::cli {

// runs/<experiment, "/" as "-">-<n>: the first that does not exist, or for a resume the newest that does
// (NOT_FOUND when there is none).
absl::StatusOr<std::string> DefaultRunFolder(const std::string& experiment_name, bool resume);

// Exclusive ownership of a run folder, given up with the object or the process.
class RunLock {
 public:
  // INVALID_ARGUMENT when another `train` works in the folder. Processes of a train that was killed may still be
  // ending: waits for them up to `patience`, then FAILED_PRECONDITION.
  static absl::StatusOr<std::unique_ptr<RunLock>> Take(const std::string& run_dir, std::chrono::milliseconds patience);
  ~RunLock();

 private:
  RunLock(int train, int roles) : train_(train), roles_(roles) {}
  int train_;  // closed in children
  int roles_;  // inherited by the roles: locked until the last of them ended
};

// INVALID_ARGUMENT naming the folder and what to do: not empty without --resume, or nothing to resume in it.
absl::Status CheckRunFolder(const std::string& run_dir, bool resume);

// Update of the newest checkpoint; also one that a crash left under its second name, which the learner takes up
// (learner/checkpoint.cc). Whether it is sound is for the learner to say.
std::optional<uint64_t> NewestCheckpoint(const std::string& run_dir);

// DATA_LOSS naming what a run to be resumed has lost: a checkpoint is there but the replay's rings or the records are
// not, or the records tell of updates but no checkpoint is there. A learner writes its first checkpoint before its
// first update, when the rings and the records exist: a run killed at any moment passes. Only the lock's owner may ask.
absl::Status CheckStateKept(const std::string& run_dir, int members);

// Writes experiment.textproto (always) and run_id (once); makes the sub-folders. Returns the run's identity.
absl::StatusOr<std::string> PrepareRunFolder(const std::string& run_dir, const v1::Experiment& experiment);

// cluster/layout: the actors of a run and the environments of each, which a resume goes on with. Nothing where the file
// is missing or is no such file: a run of an older build.
struct RunLayout {
  int actors = 0, environments = 0;
};
absl::Status WriteLayout(const std::string& run_dir, const RunLayout& layout);
std::optional<RunLayout> ReadLayout(const std::string& run_dir);

// Takes back what a start made that stored nothing, and the folder itself when that was made too.
void ClearRunFolder(const std::string& run_dir, bool remove_folder);

std::string ExperimentFile(const std::string& run_dir);
// cluster/<process>.<kind>, kind "address" or "metrics"; trimmed content, empty when there is none.
std::string AddressFile(const std::string& run_dir, const std::string& process, const std::string& kind);
std::string ReadAddress(const std::string& run_dir, const std::string& process, const std::string& kind);

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_RUN_FOLDER_H_
