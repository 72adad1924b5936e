#include "deploy/tools/verify/run.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/config/task_files.h"
#include "common/records/checkpoint.h"
#include "deploy/tools/verify/check_ledger.h"
#include "deploy/tools/verify/check_rings.h"
#include "deploy/tools/verify/verify.h"
#include "replay/settings.h"

namespace datacom::verify {
namespace {

namespace fs = std::filesystem;

// `train` and its roles, the learner, the replay: each holds its lock while it runs. Between two starts of a role only
// the lock of `train` is held.
constexpr const char* kLocks[] = {"cluster/train.lock", "cluster/roles.lock", "checkpoints/lock", "replay/lock"};
// Learner and replay lock these, too: a user may remove the file of a lock (common/base/files.h).
constexpr const char* kLockedFolders[] = {"checkpoints", "replay"};

// Takes every lock there is, or none where a process holds one. A copy of a run has none: a repair makes them, so that
// nothing starts meanwhile.
absl::StatusOr<bool> TakeLocks(VerifiedRun* run, bool repair) {
  for (const char* file : kLocks) {
    std::error_code error;
    const bool absent = !FileExists(run->Path(file)) && !fs::is_symlink(run->Path(file), error);
    if (repair && absent) std::ofstream(run->Path(file), std::ios::app).flush();
    absl::StatusOr<std::unique_ptr<FolderLock>> lock = FolderLock::TakeFile(run->Path(file));
    if (absl::IsNotFound(lock.status()) || absl::IsInvalidArgument(lock.status())) continue;  // no folder
    if (absl::IsFailedPrecondition(lock.status())) {
      run->locks.clear();
      return false;
    }
    RETURN_IF_ERROR(lock.status());
    run->locks.push_back(*std::move(lock));
  }
  for (const char* folder : kLockedFolders) {
    absl::StatusOr<std::unique_ptr<FolderLock>> lock = FolderLock::TakeFile(run->Path(folder));
    if (absl::IsFailedPrecondition(lock.status())) {
      run->locks.clear();
      return false;
    }
    if (lock.ok()) run->locks.push_back(*std::move(lock));  // some file systems lock no folders
  }
  return true;
}

}  // namespace

uint64_t VerifiedRun::RowsLearned() const {
  const uint64_t update = checkpoint.has_value() ? checkpoint->update() : 0;
  return update == 0 ? 0 : updates().RowsSeen(update);
}

uint64_t VerifiedRun::KeptLength(const std::string& file) const {
  if (!checkpoint.has_value()) return 0;
  for (const v1::FileEnd& kept : checkpoint->files()) {
    if (kept.path() == file) return kept.bytes();
  }
  return 0;
}

void VerifiedRun::CheckRunId(const std::string& file, const std::string& id) {
  if (settings.run_id.empty()) settings.run_id = id;
  if (id != settings.run_id)
    report->Damage(file, absl::StrCat("belongs to run \"", id, "\", not to \"", settings.run_id, "\""));
}

absl::StatusOr<std::unique_ptr<VerifiedRun>> OpenRun(const std::string& dir, bool repair, Report* report,
                                                     Progress* progress) {
  auto run = std::make_unique<VerifiedRun>();
  run->dir = dir;
  run->report = report;
  run->progress = progress;
  std::error_code error;
  if (!fs::exists(run->Path("experiment.textproto"), error)) return NotARunFolder(dir);
  ASSIGN_OR_RETURN(const bool stopped, TakeLocks(run.get(), repair));
  run->running = !stopped;
  if (const absl::Status links = CheckNoLinks(dir); !links.ok())
    report->Note(absl::StrCat("a resume refuses this: ", links.message()));
  absl::StatusOr<v1::Experiment> experiment = replay::ReadExperiment(run->Path("experiment.textproto"));
  absl::Status status = experiment.status();
  if (status.ok()) {
    absl::StatusOr<replay::ReplaySetup> setup = replay::SetUp(*experiment);
    status = setup.status();
    if (status.ok()) {
      run->settings = std::move(setup->options);
      run->schema = std::move(setup->schema);
    }
    run->settings.folder = run->Path("replay");
    run->experiment = *std::move(experiment);
  }
  if (!status.ok()) {
    report->Damage("experiment.textproto", status.message());
    return nullptr;
  }
  status = CheckTaskFiles(dir, run->experiment.task_options());
  if (!status.ok()) report->Damage(kTaskFilesFolder, status.message());
  run->checkpoint = CheckpointStore(run->Path("checkpoints")).Newest();
  // `train` writes run_id and keeps the rings below the run folder.
  run->rings_elsewhere = !fs::exists(run->Path("replay"), error) && !fs::exists(run->Path("run_id"), error);
  run->has_sessions = fs::exists(run->Path("replay/sessions"), error);
  const absl::StatusOr<std::string> id = ReadRunId(dir);
  run->settings.run_id = id.value_or("");
  // Only `train` writes it, before the other file.
  const bool expected = !absl::IsNotFound(id.status()) || FileExists(run->Path("cluster/layout"));
  if (expected && run->settings.run_id.empty())
    report->Damage("run_id", id.ok() ? "it is empty" : id.status().message());
  const std::string name = absl::StrCat(run->experiment.name(), ", task ", run->experiment.task(), ", ",
                                        run->experiment.algorithm(), ", ", Count(run->members(), "member"));
  report->Part("experiment", absl::StrCat(name, run->running ? ", running" : ""));
  return run;
}

namespace {

// Reads the parts in the order that verify.h explains.
void VerifyParts(VerifiedRun* run) {
  SessionFiles sessions(run);
  EpisodeRecords episodes(run);
  const std::vector<MemberRings> rings = OpenRings(run);
  LedgerState ledger = VerifyLedger(run, FirstRows(rings), sessions.Actors(), &episodes);
  sessions.Compare(VerifyRings(run, rings, &ledger, &episodes));
  sessions.CheckStarts(rings);
  run->report->Part(
      "episodes", absl::StrCat(Count(episodes.rows(), "row"), ", ", episodes.recounted, " recounted from the ledger, ",
                               episodes.assembled, " assembled from the rings"));
  bool learned = VerifyProgress(run) || episodes.rows() > 0;
  for (const auto& steps : ledger.files) learned = learned || (steps != nullptr && steps->records() > 0);
  VerifyTensorboard(run);
  VerifyPolicies(run);
  VerifyCheckpoints(run, rings, learned);
  FindLeftovers(run);
}

}  // namespace

absl::StatusOr<Verification> VerifyRun(const std::string& run_dir, bool repair) {
  Progress progress;
  std::string done;
  for (bool again = false;; again = true) {
    Report report(run_dir);
    ASSIGN_OR_RETURN(const std::unique_ptr<VerifiedRun> run, OpenRun(run_dir, repair, &report, &progress));
    if (repair && run != nullptr && run->running) {
      return absl::FailedPreconditionError(absl::StrCat("--repair: processes of ", run_dir, " run; stop them first"));
    }
    if (run != nullptr) VerifyParts(run.get());
    if (!repair || again || report.repairs().empty()) return Verification{report.sound(), done + report.Text()};
    for (const Report::Repair& make : report.repairs()) {
      const absl::StatusOr<std::string> made = make();
      absl::StrAppend(&done, made.ok() ? "repaired: " : "not repaired: ",
                      made.ok() ? *made : std::string(made.status().message()), "\n");
    }
  }
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
