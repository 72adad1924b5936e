#include "deploy/cli/run_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/framed_file.h"
#include "common/base/shell_word.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/config/task_files.h"
#include "common/nn/snapshot.h"
#include "common/records/checkpoint.h"
#include "common/records/csv.h"
#include "deploy/report/groups.h"
#include "deploy/tools/policies/run_policies.h"

namespace datacom::cli {
namespace {

namespace fs = std::filesystem;

// A role that is being started shares the lock of its `datacom train` between fork and exec, also when that is killed.
constexpr std::chrono::milliseconds kForkPatience{2000};
constexpr char kRestore[] = "; restore it from a copy, or start a new run in another --run-dir";

absl::StatusOr<int> OpenLock(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | flags, 0644);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  return fd;
}

bool LockWithin(std::chrono::milliseconds patience, int fd) {
  const Clock::Time deadline = Clock::Real().Now() + patience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (Clock::Real().Now() > deadline) return false;
    ::usleep(20000);
  }
  return true;
}

std::string NewRunId(const std::string& run_dir) {
  constexpr size_t kMostOfName = kMaxRunId - 17;
  std::random_device device;
  std::string name = FolderName(run_dir);
  if (size_t size = kMostOfName; name.size() > size) {
    while ((name[size] & 0xc0) == 0x80) --size;  // the next byte is within a code point
    name.resize(size);
  }
  return absl::StrFormat("%s-%08x%08x", name.empty() ? "run" : name, device(), device());
}

absl::StatusOr<bool> RecordsShowUpdates(const std::string& run_dir) {
  const absl::StatusOr<Csv> progress = ReadRecords(run_dir + "/progress.csv");
  const absl::StatusOr<Csv> episodes = ReadRecords(run_dir + "/episodes.csv");
  for (const absl::Status& status : {progress.status(), episodes.status()}) {
    if (!absl::IsNotFound(status)) RETURN_IF_ERROR(status);
  }
  if (episodes.ok() && episodes->rows() > 0) return true;  // the update that first sees their rows records them
  for (size_t row = 0; progress.ok() && row < progress->rows(); ++row) {
    if (progress->Number(row, "updates") > 0) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::string> DefaultRunFolder(const std::string& experiment_name, bool resume) {
  const std::string name = absl::StrReplaceAll(experiment_name, {{"/", "-"}}), stem = absl::StrCat("runs/", name);
  ASSIGN_OR_RETURN(const std::vector<std::string> folders, ListFolder("runs"));
  int last = 0;
  for (const std::string& folder : folders) {
    int number = 0;
    absl::string_view digits = folder;
    const bool numbered = absl::ConsumePrefix(&digits, name + "-") && digits.size() < 10 &&
                          absl::SimpleAtoi(digits, &number) && absl::StrCat(number) == digits;
    if (numbered) last = std::max(last, number);
  }
  if (!resume) return absl::StrCat(stem, "-", last + 1);
  if (last == 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "no run to resume: there is no ", stem, "-1; name the folder with --run-dir, or start a run without --resume"));
  return absl::StrCat(stem, "-", last);
}

std::string FolderName(const std::string& folder) {
  return fs::path(WithoutSlash(AbsolutePath(folder))).filename().string();
}

absl::StatusOr<std::unique_ptr<RunLock>> RunLock::Take(const std::string& run_dir, std::chrono::milliseconds patience) {
  const std::string folder = absl::StrCat(run_dir, "/cluster");
  RETURN_IF_ERROR(MakeFolders(folder));
  std::unique_ptr<RunLock> lock(new RunLock);
  ASSIGN_OR_RETURN(lock->train_, OpenLock(folder + "/train.lock", O_CLOEXEC));
  if (!LockWithin(std::min(patience, kForkPatience), lock->train_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("run folder ", run_dir, " is in use by another `datacom train`; watch it with: datacom status ",
                     ShellWord(run_dir), ", or choose another --run-dir"));
  }
  ASSIGN_OR_RETURN(lock->roles_, OpenLock(folder + "/roles.lock", 0));
  if (!LockWithin(patience, lock->roles_)) {
    return absl::FailedPreconditionError(absl::StrCat("processes of an earlier run are still running in ", run_dir,
                                                      "; stop them first: `fuser ", ShellWord(folder + "/roles.lock"),
                                                      "` lists them"));
  }
  return lock;
}

RunLock::~RunLock() {
  ::close(roles_);
  ::close(train_);
}

bool HoldsNoRun(const std::string& run_dir) {
  static constexpr const char* kFolders[] = {"logs", "replay", "checkpoints", "policies"};
  static constexpr const char* kFiles[] = {"run_id", "run_id.tmp", "experiment.textproto.tmp"};
  const auto is_one_of = [](const std::string& name, const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run_dir, error)) {
    const std::string name = entry.path().filename().string();
    if (is_one_of(name, kFiles) || name == kTaskFilesFolder) continue;
    if (is_one_of(name, kFolders) && fs::is_empty(entry.path(), error)) continue;
    if (name != "cluster" || !entry.is_directory(error)) return false;
    for (const fs::directory_entry& lock : fs::directory_iterator(entry.path(), error)) {
      if (lock.path().filename() != "train.lock" && lock.path().filename() != "roles.lock") return false;
    }
  }
  return !error;
}

absl::Status CheckRunFolder(const std::string& run_dir, bool resume) {
  std::error_code error;
  if (IsFolder(run_dir)) RETURN_IF_ERROR(CheckNoLinks(run_dir));
  if (report::IsSweepFolder(run_dir)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--run-dir ", run_dir, " is the folder of a sweep; resume it with its `datacom sweep` command, or name one of ",
        "the runs in it"));
  }
  const bool run = fs::exists(ExperimentFile(run_dir), error);
  if (resume) {
    if (run) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "nothing to resume in ", run_dir, ": it has no experiment.textproto; start a run there with: datacom train ",
        "EXPERIMENT --run-dir ", ShellWord(run_dir)));
  }
  if (fs::exists(run_dir, error) && !fs::is_directory(run_dir, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--run-dir ", run_dir, " is a file; name a folder, e.g. --run-dir runs/first"));
  }
  if (fs::exists(run_dir, error) && !fs::is_empty(run_dir, error)) {
    if (fs::exists(run_dir + "/cluster/train.lock", error)) {
      RETURN_IF_ERROR(RunLock::Take(run_dir, std::chrono::milliseconds(0)).status());
    }
    if (HoldsNoRun(run_dir)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        run ? absl::StrCat("--run-dir ", run_dir, " holds a run; resume it with: datacom train --run-dir ",
                           ShellWord(run_dir), " --resume, or choose another --run-dir")
            : absl::StrCat("--run-dir ", run_dir, " is not empty and holds no run; name a new folder, e.g. --run-dir ",
                           ShellWord(run_dir + "/run")));
  }
  return absl::OkStatus();
}

std::optional<uint64_t> NewestCheckpoint(const std::string& run_dir) {
  return CheckpointStore(run_dir + "/checkpoints").Reached();
}

namespace {

// The checkpoint that the learner will continue: the newest one that is sound. Nothing when there is none, or when only
// a second name is left of one, which the learner restores.
absl::StatusOr<std::optional<v1::LearnerCheckpoint>> SoundCheckpoint(const std::string& run_dir) {
  std::vector<absl::Status> damage;
  std::optional<v1::LearnerCheckpoint> newest = CheckpointStore(run_dir + "/checkpoints").Newest(&damage);
  for (const absl::Status& status : damage) {
    if (absl::IsFailedPrecondition(status)) return status;  // of another version
  }
  if (newest.has_value() || damage.empty()) return newest;
  return absl::DataLossError(absl::StrCat("--resume: no checkpoint is sound: ", damage.front().message(), kRestore));
}

// The policies that evaluators still need and of which the checkpoint has no sum: those of an epoch that was cut short.
absl::Status CheckPendingPolicies(const std::string& run_dir, const v1::Experiment& resolved,
                                  const v1::LearnerCheckpoint& checkpoint) {
  const std::string run_id = tools::RunIdOf(run_dir);
  std::set<std::string> summed;
  for (const v1::FileEnd& file : checkpoint.files()) summed.insert(file.path());
  for (const v1::EpochRecord& pending : checkpoint.pending()) {
    if (summed.contains(PoliciesPath(pending.epoch()))) continue;
    // A longer run drops this row and writes the policies again (Trainer::Restore).
    const uint64_t end = std::min(pending.epoch() * resolved.run().steps_per_epoch(), resolved.run().env_steps());
    if (pending.epoch() + 1 == checkpoint.next_epoch() && end > checkpoint.last_epoch_steps()) continue;
    const std::string path = absl::StrCat(run_dir, "/", PoliciesPath(pending.epoch()));
    const absl::StatusOr<std::vector<Snapshot>> snapshots = ReadSnapshotFile(path);
    const absl::Status status = snapshots.ok()
                                    ? Annotate(tools::CheckEpoch(resolved, run_id, pending.epoch(), *snapshots,
                                                                 [&checkpoint] { return checkpoint; }),
                                               path)
                                    : snapshots.status();
    if (!status.ok()) return absl::DataLossError(absl::StrCat("--resume: ", status.message(), kRestore));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<uint64_t> CheckRecords(const std::string& run_dir, const v1::Experiment& resolved) {
  ASSIGN_OR_RETURN(const std::optional<v1::LearnerCheckpoint> checkpoint, SoundCheckpoint(run_dir));
  if (!checkpoint.has_value()) return 0;
  absl::Status first;
  CheckCheckpoint(run_dir, *checkpoint, ReadRunId(run_dir).value_or(""), FixedSettings(resolved), UpdatesOf(resolved),
                  [&first](const std::string&, const absl::Status& problem) { first.Update(problem); });
  if (absl::IsDataLoss(first)) return absl::DataLossError(absl::StrCat("--resume: ", first.message(), kRestore));
  if (!first.ok()) return Annotate(first, "--resume");
  RETURN_IF_ERROR(LastIncarnation(run_dir + "/checkpoints/incarnation").status());
  RETURN_IF_ERROR(CheckPendingPolicies(run_dir, resolved, *checkpoint));
  return checkpoint->replay_start();
}

absl::Status CheckStateKept(const std::string& run_dir, int members) {
  const auto lost = [&run_dir](const std::string& what) {
    return absl::DataLossError(absl::StrCat("--resume: ", run_dir, " has lost ", what, kRestore));
  };
  if (!NewestCheckpoint(run_dir)) {
    ASSIGN_OR_RETURN(const bool learned, RecordsShowUpdates(run_dir));
    return learned ? lost("every checkpoint in checkpoints/, although its records show updates") : absl::OkStatus();
  }
  std::vector<std::string> files = {"run_id", "progress.csv", "episodes.csv"};
  for (int member = 0; member < members; ++member) files.push_back(absl::StrCat("replay/member_", member, ".rows"));
  std::erase_if(files, [&run_dir](const std::string& file) { return FileExists(absl::StrCat(run_dir, "/", file)); });
  return files.empty() ? absl::OkStatus()
                       : lost(absl::StrCat(absl::StrJoin(files, ", "), ", which its checkpoints need"));
}

absl::Status UnshareFiles(const std::string& run_dir) {
  std::error_code error;
  std::vector<fs::path> files = {fs::path(run_dir) / "episodes.csv", fs::path(run_dir) / "progress.csv"};
  for (const char* folder : {"ledger", "logs", "replay", "tensorboard"}) {  // others hold what is replaced as a whole
    fs::recursive_directory_iterator entry(fs::path(run_dir) / folder, error), end;
    for (; !error && entry != end; entry.increment(error)) files.push_back(entry->path());
  }
  for (const fs::path& path : files) {
    const bool shared = fs::is_regular_file(fs::symlink_status(path, error)) && fs::hard_link_count(path, error) > 1;
    if (!shared || error) continue;
    const std::string own = path.string() + ".tmp";
    fs::remove(own, error);
    if (!fs::copy_file(path, own, error)) {
      const absl::Status status = ErrnoStatus(error.value(), absl::StrCat("copy ", path.string()));
      fs::remove(own, error);  // on a full disk half a file would only be in the way
      return status;
    }
    RETURN_IF_ERROR(SyncFile(own));
    fs::rename(own, path, error);
    if (error) return ErrnoStatus(error.value(), absl::StrCat("rename ", own));
    RETURN_IF_ERROR(SyncName(path.string()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> PrepareRunFolder(const std::string& run_dir, const std::string& experiment) {
  for (const char* folder : {"cluster", "logs", "replay", "checkpoints", "policies"}) {
    RETURN_IF_ERROR(MakeFolders(absl::StrCat(run_dir, "/", folder)));
  }
  absl::StatusOr<std::string> id = ReadRunId(run_dir);
  if (!absl::IsNotFound(id.status())) RETURN_IF_ERROR(id.status());
  if (id.value_or("").empty()) {
    id = NewRunId(run_dir);
    RETURN_IF_ERROR(WriteFileAtomically(run_dir + "/run_id", *id + "\n"));
  }
  RETURN_IF_ERROR(WriteFileAtomically(ExperimentFile(run_dir), experiment));
  return id;
}

absl::Status WriteLayout(const std::string& run_dir, const Layout& layout) {
  return WriteFileAtomically(run_dir + "/cluster/layout",
                             absl::StrCat("actors ", layout.actors, "\nenvironments ", layout.environments, "\n"));
}

std::optional<Layout> ReadLayout(const std::string& run_dir) {
  std::istringstream file(ReadFile(run_dir + "/cluster/layout").value_or(""));
  Layout layout;
  std::string actors, environments;
  if (!(file >> actors >> layout.actors >> environments >> layout.environments)) return std::nullopt;
  if (actors != "actors" || environments != "environments" || layout.actors < 1 || layout.environments < 1)
    return std::nullopt;
  return layout;
}

void ClearRunFolder(const std::string& run_dir, bool remove_folder) {
  std::error_code error;  // ignored: the next start refuses the folder if something is left in it
  if (remove_folder) {
    fs::remove_all(run_dir, error);
    return;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(run_dir, error)) fs::remove_all(entry.path(), error);
}

std::string ExperimentFile(const std::string& run_dir) { return run_dir + "/experiment.textproto"; }

std::string AddressFile(const std::string& run_dir, const std::string& process, const std::string& kind) {
  return absl::StrCat(run_dir, "/cluster/", process, ".", kind);
}

std::string ReadAddress(const std::string& run_dir, const std::string& process, const std::string& kind) {
  const absl::StatusOr<std::string> content = ReadFile(AddressFile(run_dir, process, kind));
  return content.ok() ? std::string(absl::StripAsciiWhitespace(*content)) : "";
}

}  // namespace datacom::cli
// SPDX-License-Identifier: Apache-2.0
