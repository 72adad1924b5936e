// The learner's state on disk: checkpoints/<update>/ in the run folder.
//
//   learner.state     v1::LearnerCheckpoint: counters, ends of record files, open and pending epochs
//   algorithm.state   the algorithm's named tensors, sorted by name
//   state.sha256      StateHash: equal for equal numbers, whatever the run's name, place or time
//
// Both state files have a frame (common/base/framed_file.h). A checkpoint is written to a temporary
// folder, synced and renamed: whole or absent. The two newest are kept; loading falls back to the older when the newest
// is damaged. Not thread-safe; every function blocks on the disk.
#ifndef DATACOM_COMMON_RECORDS_CHECKPOINT_H_
#define DATACOM_COMMON_RECORDS_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/records/append_file.h"
#include "common/transitions/update_schedule.h"
#include "datacom/v1/checkpoint.pb.h"

namespace datacom {

// The bytes of each tensor by its name. learner/algorithms/algorithm.h names the same type State.
using AlgorithmState = std::map<std::string, std::string>;

struct Checkpoint {
  v1::LearnerCheckpoint learner;
  AlgorithmState algorithm;
};

// Hex SHA-256 over the update, the epoch and every entry of the algorithm's state: no paths, ids or times.
std::string StateHash(const Checkpoint& checkpoint);

class CheckpointStore {
 public:
  explicit CheckpointStore(std::string folder) : folder_(std::move(folder)) {}

  // Replaces a checkpoint of the same update. On error the older ones stay. NOT_FOUND where the run's folder is gone,
  // which is not made again: a user may have moved it.
  absl::Status Save(Checkpoint checkpoint) const;
  // The newest sound checkpoint; what was passed over, and why, is appended to `notes` and renamed <update>.damaged.
  // Removes what interrupted calls of Save have left. NOT_FOUND when there is none; DATA_LOSS naming every file when
  // all are damaged; FAILED_PRECONDITION when the newest is of another format version; PERMISSION_DENIED or
  // RESOURCE_EXHAUSTED when this process cannot read it, or the folder, for now.
  absl::StatusOr<Checkpoint> LoadNewest(std::vector<std::string>* notes) const;
  // The newest sound checkpoint, for readers beside the learner: changes nothing. `damage` receives the errors of those
  // passed over, newest first; one that newer ones have replaced meanwhile is no error.
  std::optional<v1::LearnerCheckpoint> Newest(std::vector<absl::Status>* damage = nullptr) const;
  // Updates of the checkpoints there are, newest first.
  std::vector<uint64_t> List() const;
  // The largest update of a checkpoint, sound or not. A crash leaves one that is being replaced under its second name.
  std::optional<uint64_t> Reached() const;
  std::string Path(uint64_t update) const;
  // One checkpoint. NOT_FOUND or DATA_LOSS naming the file, FAILED_PRECONDITION for another format version.
  absl::StatusOr<Checkpoint> Load(uint64_t update) const;

 private:
  absl::StatusOr<Checkpoint> LoadOnce(uint64_t update) const;
  void RemoveOld() const;
  std::string folder_;
};

// The file of an epoch's policies, below the run folder.
std::string PoliciesPath(uint32_t epoch);
// Whether a file below the run folder is one of them: it is written as a whole. Other files of a checkpoint grow.
bool IsPoliciesPath(absl::string_view path);

// Whether a path, which a file of a stranger may name, stays below the run folder that it is put behind.
bool IsBelowRun(const std::string& path);

// INVALID_ARGUMENT, naming it, for a link in the place of a record or of a folder that a run writes, or in such a
// folder. Rings may lie elsewhere: they name their run.
absl::Status CheckNoLinks(const std::string& run_dir);

// The errors of CheckFileEnd for a file below the run folder, an error if it is no file, and DATA_LOSS when it is not
// below the folder, or when more follows in a file of policies: only records grow after a checkpoint.
absl::Status CheckRunFile(const std::string& run_dir, const std::string& path, const FileEnd& end);

// The id in a run folder's file run_id, which `train` writes. NOT_FOUND without the file; INVALID_ARGUMENT when it
// holds none.
absl::StatusOr<std::string> ReadRunId(const std::string& run_dir);

// The number of the learner's last start that is kept in `path`; 0 without a file. DATA_LOSS when the file does not
// hold a number.
absl::StatusOr<uint32_t> LastIncarnation(const std::string& path);
// The number of this start of the learner: one more than the last one kept in `path`, kept there before it is returned.
// The errors of LastIncarnation.
absl::StatusOr<uint32_t> NextIncarnation(const std::string& path);

// Whether a run may continue a checkpoint: a pure function.
// FAILED_PRECONDITION or INVALID_ARGUMENT, naming what differs, unless the checkpoint is of this run, of an experiment
// with the same `fixed` settings (FixedSettings, common/config/experiment.h), and of no later update than the run's
// last. DATA_LOSS if it has not the numbers of each member.
absl::Status CheckResume(const v1::LearnerCheckpoint& checkpoint, const std::string& run_id, const std::string& fixed,
                         const UpdateSchedule& updates);

// CheckResume, and CheckRunFile of all files that the checkpoint names, at least one. `report` receives each problem
// and the file that has it, below the run folder. The message begins with the file's path.
void CheckCheckpoint(const std::string& run_dir, const v1::LearnerCheckpoint& checkpoint, const std::string& run_id,
                     const std::string& fixed, const UpdateSchedule& updates,
                     const std::function<void(const std::string& file, const absl::Status& problem)>& report);

}  // namespace datacom

#endif  // DATACOM_COMMON_RECORDS_CHECKPOINT_H_
// SPDX-License-Identifier: Apache-2.0
