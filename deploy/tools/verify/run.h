// A run folder that is verified: its settings, the schema of its rows, its newest sound checkpoint, and whether its
// processes run. Where none runs, the run's locks are held as long as this object lives, so that none starts. Opening
// blocks on the disk. Not thread-safe.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_RUN_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_RUN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/records/csv.h"
#include "common/transitions/row_schema.h"
#include "common/transitions/update_schedule.h"
#include "datacom/v1/checkpoint.pb.h"
#include "datacom/v1/experiment.pb.h"
#include "replay/settings.h"

namespace datacom::verify {

// The findings of a verification: a line for each kind of part, notes, and damage with file and position. Some findings
// carry a repair.
class Report {
 public:
  // `run_dir`: cut from the paths in what is told.
  explicit Report(absl::string_view run_dir) : folder_(std::string(run_dir) + "/") {}

  // Changes the run folder and returns what it did.
  using Repair = std::function<absl::StatusOr<std::string>()>;

  void Part(absl::string_view kind, absl::string_view counts);
  // Something that is no damage but worth knowing.
  void Note(absl::string_view text, Repair repair = nullptr);
  // `file` is relative to the run folder; `what` begins with the position, or with the file's name, which is cut. Only
  // the first findings of a file are kept; the others are counted.
  void Damage(const std::string& file, absl::string_view what, Repair repair = nullptr);

  bool sound() const { return damages_.empty(); }
  const std::vector<Repair>& repairs() const { return repairs_; }
  std::string Text() const;  // lines

 private:
  void Keep(Repair repair);

  const std::string folder_;
  std::string parts_, notes_;
  std::vector<std::string> damages_;
  std::map<std::string, uint64_t> by_file_;  // number of findings
  std::vector<Repair> repairs_;
};

// Tells on stderr how far long work is: the first time after two seconds, then every two seconds.
class Progress {
 public:
  void Tell(absl::string_view what, uint64_t done, uint64_t all);

 private:
  Clock::Time told_ = Clock::Real().Now();
};

struct VerifiedRun {
  std::string dir;
  bool running = false;  // its processes may still write
  std::vector<std::unique_ptr<FolderLock>> locks;
  replay::Options settings;   // run_id: taken from the first part that names it; empty before
  v1::Experiment experiment;  // resolved
  RowSchema schema;
  // The newest sound checkpoint when the verification began. What it names exists in all that is read later.
  std::optional<v1::LearnerCheckpoint> checkpoint;
  bool rings_elsewhere = false;  // on a cluster the replay has a volume of its own
  bool has_sessions = false;     // a replay had started when the verification began
  Report* report = nullptr;
  Progress* progress = nullptr;

  uint32_t members() const { return static_cast<uint32_t>(settings.members.size()); }
  std::string Path(const std::string& file) const { return dir + "/" + file; }
  const UpdateSchedule& updates() const { return settings.limits.schedule; }
  // Rows of each member that the checkpoint's update has seen; 0 without one.
  uint64_t RowsLearned() const;
  // The length that the checkpoint names for a record file; 0 without one.
  uint64_t KeptLength(const std::string& file) const;
  // Whether rows were stored: a missing ring or file of sessions is a loss.
  bool has_rows() const { return has_sessions || (RowsLearned() > 0 && !rings_elsewhere); }
  // Damage when `id` differs from the run's id.
  void CheckRunId(const std::string& file, const std::string& id);
};

// INVALID_ARGUMENT when the folder is not a run folder. A damaged experiment is reported as damage, and null returned.
absl::StatusOr<std::unique_ptr<VerifiedRun>> OpenRun(const std::string& dir, bool repair, Report* report,
                                                     Progress* progress);

// A file of rows that only grows, progress.csv or episodes.csv.
struct RecordFile {
  Csv csv;
  std::optional<size_t> kept;  // rows up to the length at the newest checkpoint, if that is known
};
// Reports what is wrong with the file by itself, and returns nothing if it is damaged or not there yet. `whole`: of
// CheckRecords.
std::optional<RecordFile> ReadRecordFile(VerifiedRun* run, const std::string& file,
                                         const std::map<std::string, uint64_t>& whole);

// What the learner writes: progress.csv, the TensorBoard files, the checkpoints and the snapshots of the epochs.
//
// Returns whether the records show updates.
bool VerifyProgress(VerifiedRun* run);
void VerifyTensorboard(VerifiedRun* run);
void VerifyPolicies(VerifiedRun* run);
// Call it last: a checkpoint names nothing that does not exist when it is written. `learned`: the records show that the
// run had begun to learn, so there is a checkpoint.
struct MemberRings;  // check_rings.h
void VerifyCheckpoints(VerifiedRun* run, const std::vector<MemberRings>& rings, bool learned);

// Repairs that have one right answer. Each returns what it did.
//
// Cuts the file to `bytes`; for files whose tail is unfinished. Nothing when the checkpoint names a larger length.
Report::Repair CutTail(const VerifiedRun& run, const std::string& file, uint64_t bytes);
// Moves a failure ring aside and rebuilds it from the member's rows, which must all be present.
Report::Repair RebuildFailures(const VerifiedRun& run, uint32_t member);
// Renames checkpoints/<update> to checkpoints/<update>.damaged, as the learner does when it resumes.
Report::Repair MoveCheckpointAside(const VerifiedRun& run, uint64_t update);
// Notes files and folders that an interrupted write has left.
void FindLeftovers(VerifiedRun* run);
// "2 rings", "1 ring".
std::string Count(uint64_t number, const std::string& singular, const std::string& plural = "");

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_RUN_H_
// SPDX-License-Identifier: Apache-2.0
