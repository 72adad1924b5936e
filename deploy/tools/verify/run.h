// A run folder that is verified: its settings, the schema of its rows, its newest sound checkpoint, and whether its
// processes run. Where none runs, the run's locks are held as long as this object lives, so that none starts. Opening
// blocks on the disk. Not thread-safe.
#ifndef DATACOM_DEPLOY_TOOLS_VERIFY_RUN_H_
#define DATACOM_DEPLOY_TOOLS_VERIFY_RUN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/folder_lock.h"
#include "common/transitions/row_schema.h"
#include "common/transitions/update_schedule.h"
#include "datacom/v1/checkpoint.pb.h"
#include "deploy/tools/verify/findings.h"
#include "replay/settings.h"

namespace datacom::verify {

struct VerifiedRun {
  std::string dir;
  bool running = false;  // its processes may still write
  std::vector<std::unique_ptr<FolderLock>> locks;
  replay::Options settings;  // run_id: taken from the first part that names it; empty before
  uint64_t steps_per_epoch = 0;
  std::string fixed_settings;  // those that a resume may not change (FixedSettings)
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
absl::StatusOr<std::unique_ptr<VerifiedRun>> OpenRun(const std::string& dir, Report* report, Progress* progress);

// Cuts the file to `bytes`; for files whose tail is unfinished. Nothing when the checkpoint names a larger length.
Report::Repair CutTail(const VerifiedRun& run, const std::string& file, uint64_t bytes);
// "2 rings", "1 ring".
std::string Count(uint64_t number, const std::string& singular, const std::string& plural = "");

}  // namespace datacom::verify

#endif  // DATACOM_DEPLOY_TOOLS_VERIFY_RUN_H_
// SPDX-License-Identifier: Apache-2.0
