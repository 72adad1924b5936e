#include "common/records/checkpoint.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/bytes.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/framed_file.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/config/sha256.h"
#include "common/config/task_files.h"

namespace datacom {
namespace {

namespace fs = std::filesystem;

constexpr FileFormat kFormat = {"checkpoint file", "DCCHECKP", 6,
                                "; resume with the build named in build.txt, or start "
                                "a new run"};
constexpr size_t kKept = 2;
constexpr int kLoadAttempts = 10;

// The update whose checkpoint a folder is: "007" and "7 " are other folders than that of update 7.
std::optional<uint64_t> UpdateOf(const fs::path& folder) {
  const std::string name = folder.filename().string();
  uint64_t update = 0;
  return absl::SimpleAtoi(name, &update) && absl::StrCat(update) == name ? std::optional(update) : std::nullopt;
}

std::string EncodeState(const AlgorithmState& state) {
  std::string out;
  size_t size = sizeof(uint64_t);
  for (const auto& [name, bytes] : state) size += 2 * sizeof(uint64_t) + name.size() + bytes.size();
  out.reserve(size);
  PutValue<uint64_t>(state.size(), &out);
  for (const auto& [name, bytes] : state) {
    PutSized(name, &out);
    PutSized(bytes, &out);
  }
  return out;
}

bool DecodeState(absl::string_view in, AlgorithmState* state) {
  uint64_t count = 0;
  if (!TakeValue(&in, &count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    absl::string_view name, bytes;
    if (!TakeSized(&in, &name) || !TakeSized(&in, &bytes)) return false;
    (*state)[std::string(name)] = std::string(bytes);
  }
  return in.empty();
}

absl::Status WriteState(const std::string& folder, Checkpoint checkpoint) {
  const std::string algorithm = EncodeState(checkpoint.algorithm);
  checkpoint.learner.set_algorithm_sha256(Sha256Hex(algorithm));
  RETURN_IF_ERROR(MakeFolder(folder));
  RETURN_IF_ERROR(WriteFramedFile(kFormat, folder + "/learner.state", checkpoint.learner.SerializeAsString()));
  RETURN_IF_ERROR(WriteFramedFile(kFormat, folder + "/algorithm.state", algorithm));
  RETURN_IF_ERROR(WriteFileAtomically(folder + "/state.sha256", StateHash(checkpoint) + "\n"));
  return SyncFile(folder);
}

}  // namespace

std::string StateHash(const Checkpoint& checkpoint) {
  Sha256 hash;
  hash.AddField(absl::StrCat("update ", checkpoint.learner.update(), " epoch ", checkpoint.learner.next_epoch()));
  for (const auto& [name, bytes] : checkpoint.algorithm) {
    hash.AddField(name);
    hash.AddField(bytes);
  }
  return hash.Hex();
}

std::string CheckpointStore::Path(uint64_t update) const { return absl::StrCat(folder_, "/", update); }

std::vector<uint64_t> CheckpointStore::List() const {
  std::vector<uint64_t> updates;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    if (const auto update = UpdateOf(entry.path())) updates.push_back(*update);
  }
  std::sort(updates.rbegin(), updates.rend());
  return updates;
}

std::optional<uint64_t> CheckpointStore::Reached() const {
  std::optional<uint64_t> reached;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const auto update = UpdateOf(std::string(absl::StripSuffix(entry.path().native(), ".old")));
    if (update) reached = std::max(reached.value_or(0), *update);
  }
  return reached;
}

absl::Status CheckpointStore::Save(Checkpoint checkpoint) const {
  const std::string path = Path(checkpoint.learner.update());
  const std::string temporary = path + ".tmp", replaced = path + ".old";
  std::error_code error;
  RETURN_IF_ERROR(MakeFolder(folder_));
  fs::remove_all(temporary, error);
  if (const absl::Status status = WriteState(temporary, std::move(checkpoint)); !status.ok()) {
    fs::remove_all(temporary, error);  // on a full disk half a checkpoint would only be in the way
    return status;
  }
  fs::remove_all(replaced, error);
  error.clear();
  if (fs::exists(path, error)) fs::rename(path, replaced, error);
  DATACOM_FAILPOINT("checkpoint.replaced");
  if (!error) fs::rename(temporary, path, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("rename ", temporary, " to ", path));
  DATACOM_FAILPOINT("checkpoint.renamed");
  RETURN_IF_ERROR(SyncFile(folder_));
  fs::remove_all(replaced, error);
  RemoveOld();
  return absl::OkStatus();
}

void CheckpointStore::RemoveOld() const {
  const std::vector<uint64_t> updates = List();
  std::error_code error;  // what cannot be removed now is tried again at the next checkpoint
  for (size_t i = kKept; i < updates.size(); ++i) fs::remove_all(Path(updates[i]), error);
}

absl::StatusOr<Checkpoint> CheckpointStore::Load(uint64_t update) const {
  const auto version = [path = Path(update)] {  // a number of an inode may come again
    struct stat found = {};
    ::stat(path.c_str(), &found);
    return std::tuple(found.st_ino, found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
  };
  for (int attempt = 1;; ++attempt) {
    const auto before = version();
    absl::StatusOr<Checkpoint> checkpoint = LoadOnce(update);
    // Else the learner may have replaced it meanwhile by one of the same update.
    if (checkpoint.ok() || version() == before || attempt == kLoadAttempts) return checkpoint;
  }
}

absl::StatusOr<Checkpoint> CheckpointStore::LoadOnce(uint64_t update) const {
  const std::string path = Path(update);
  Checkpoint checkpoint;
  ASSIGN_OR_RETURN(const std::string learner, ReadFramedFile(kFormat, path + "/learner.state"));
  if (!checkpoint.learner.ParseFromString(learner)) {
    return absl::DataLossError(absl::StrCat(path, "/learner.state: not a LearnerCheckpoint message"));
  }
  ASSIGN_OR_RETURN(const std::string algorithm, ReadFramedFile(kFormat, path + "/algorithm.state"));
  if (Sha256Hex(algorithm) != checkpoint.learner.algorithm_sha256()) {
    return absl::DataLossError(absl::StrCat(path, "/algorithm.state: does not belong to the learner.state next to it"));
  }
  if (!DecodeState(algorithm, &checkpoint.algorithm)) {
    return absl::DataLossError(absl::StrCat(path, "/algorithm.state: entries do not fill the file"));
  }
  ASSIGN_OR_RETURN(const std::string kept, ReadFile(path + "/state.sha256"));
  if (absl::StripSuffix(kept, "\n") != StateHash(checkpoint)) {
    return absl::DataLossError(absl::StrCat(path, "/state.sha256: does not match the state"));
  }
  if (checkpoint.learner.update() != update) {
    return absl::DataLossError(absl::StrCat(path, ": holds update ", checkpoint.learner.update()));
  }
  return checkpoint;
}

absl::StatusOr<Checkpoint> CheckpointStore::LoadNewest(std::vector<std::string>* notes) const {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder_));
  std::error_code error;
  for (const std::string& name : names) {
    const fs::path path = fs::path(folder_) / name, whole = fs::path(path).replace_extension();
    const bool unfinished = path.extension() == ".tmp", replaced = path.extension() == ".old";
    if (!(unfinished || replaced) || !UpdateOf(whole)) continue;
    if (unfinished || fs::exists(whole, error)) {
      fs::remove_all(path, error);  // a crash while Save wrote it, or after its two renames
    } else {
      fs::rename(path, whole, error);  // a crash between them: it is whole
    }
  }
  std::vector<std::string> problems;
  std::vector<uint64_t> damaged;
  for (const uint64_t update : List()) {
    absl::StatusOr<Checkpoint> checkpoint = Load(update);
    if (checkpoint.ok()) {
      for (const std::string& problem : problems) {
        notes->push_back(absl::StrCat("damaged checkpoint passed over: ", problem, "; using update ", update));
      }
      // Out of the way, so that they do not count among the two that are kept.
      for (const uint64_t bad : damaged) {
        fs::remove_all(Path(bad) + ".damaged", error);
        fs::rename(Path(bad), Path(bad) + ".damaged", error);
      }
      return checkpoint;
    }
    const absl::Status& status = checkpoint.status();
    // The checkpoint may be sound. Whoever passes over it loses it at the next start.
    if (absl::IsFailedPrecondition(status) || CannotBeReadForNow(status)) return status;
    problems.push_back(std::string(status.message()));
    damaged.push_back(update);
  }
  if (problems.empty()) return absl::NotFoundError(absl::StrCat(folder_, ": no checkpoint"));
  return absl::DataLossError(absl::StrCat("no checkpoint in ", folder_, " is sound: ", absl::StrJoin(problems, "; "),
                                          "; restore the folder from a copy, or start a new run"));
}

std::optional<v1::LearnerCheckpoint> CheckpointStore::Newest(std::vector<absl::Status>* damage) const {
  for (const uint64_t update : List()) {
    absl::StatusOr<Checkpoint> checkpoint = Load(update);
    if (checkpoint.ok()) return std::move(checkpoint->learner);
    if (damage != nullptr && !absl::IsNotFound(checkpoint.status())) damage->push_back(checkpoint.status());
  }
  return std::nullopt;
}

bool IsBelowRun(const std::string& path) {
  const fs::path given(path);
  return given == given.lexically_normal() && !given.empty() && given.is_relative() && *given.begin() != "." &&
         *given.begin() != "..";
}

absl::Status CheckNoLinks(const std::string& run_dir) {
  std::vector<std::string> paths = {"build.txt", "episodes.csv", "experiment.textproto", "progress.csv", "run_id"};
  for (const char* folder :
       {"archive", "checkpoints", "cluster", "ledger", "logs", "policies", kTaskFilesFolder, "tensorboard"}) {
    paths.emplace_back(folder);
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(absl::StrCat(run_dir, "/", folder)));
    for (const std::string& name : names) paths.push_back(absl::StrCat(folder, "/", name));
  }
  std::error_code error;
  for (const std::string& path : paths) {
    if (!fs::is_symlink(absl::StrCat(run_dir, "/", path), error)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(run_dir, "/", path, " is a link; what a run writes belongs to the run folder itself: put what it ",
                     "names in its place, or make the whole run folder a link"));
  }
  return absl::OkStatus();
}

absl::Status CheckRunFile(const std::string& run_dir, const std::string& path, const FileEnd& end) {
  const std::string file = absl::StrCat(run_dir, "/", path);
  if (!IsBelowRun(path)) return absl::DataLossError(absl::StrCat(file, " is not below the run folder"));
  std::error_code error;
  const uint64_t bytes = fs::file_size(file, error);
  if (error == std::errc::not_supported) return absl::InvalidArgumentError(file + " is not a regular file");
  if (error && error != std::errc::no_such_file_or_directory) return ErrnoStatus(error.value(), file);
  if (error || bytes == end.bytes || (bytes > end.bytes && !IsPoliciesPath(path))) return CheckFileEnd(file, end);
  return absl::DataLossError(absl::StrCat(file, " has ", bytes, " bytes, but ", end.bytes, " were recorded"));
}

absl::StatusOr<std::string> ReadRunId(const std::string& run_dir) {
  constexpr uint64_t kMostBytes = 1 << 12;
  const std::string path = run_dir + "/run_id";
  ASSIGN_OR_RETURN(const std::string line, ReadFile(path, kMostBytes));
  const std::string id(absl::StripAsciiWhitespace(line));
  RETURN_IF_ERROR(CheckFolderName(path, id));  // it has the name of a folder, and messages and commands take it
  return id;
}

std::string PoliciesPath(uint32_t epoch) { return absl::StrFormat("policies/epoch_%04d.snapshot", epoch); }

bool IsPoliciesPath(absl::string_view path) { return absl::StartsWith(path, "policies/"); }

absl::StatusOr<uint32_t> LastIncarnation(const std::string& path) {
  uint32_t last = 0;
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return 0;
  RETURN_IF_ERROR(text.status());
  if (absl::SimpleAtoi(absl::StripSuffix(*text, "\n"), &last) && last < std::numeric_limits<uint32_t>::max())
    return last;
  return absl::DataLossError(
      absl::StrCat(path, ": not the number of a start: '", absl::Utf8SafeCHexEscape(*text), "'"));
}

absl::StatusOr<uint32_t> NextIncarnation(const std::string& path) {
  ASSIGN_OR_RETURN(const uint32_t last, LastIncarnation(path));
  RETURN_IF_ERROR(WriteFileAtomically(path, absl::StrCat(last + 1, "\n")));
  return last + 1;
}

absl::Status CheckResume(const v1::LearnerCheckpoint& checkpoint, const std::string& run_id, const std::string& fixed,
                         const UpdateSchedule& updates) {
  const std::string name = absl::StrCat("the checkpoint at update ", checkpoint.update());
  if (checkpoint.run_id() != run_id) {
    return absl::FailedPreconditionError(absl::StrCat(name, " belongs to run \"",
                                                      absl::Utf8SafeCHexEscape(checkpoint.run_id()),
                                                      "\", not to run \"", absl::Utf8SafeCHexEscape(run_id), "\""));
  }
  const auto written = ParseExperiment(checkpoint.experiment(), "the checkpoint's experiment");
  if (!written.ok()) return absl::FailedPreconditionError(written.status().message());  // of another build
  // Resolved again: the build that wrote it may have known fewer settings.
  if (FixedSettings(ResolveExperiment(*written)) != fixed) {
    return absl::InvalidArgumentError(absl::StrCat("the experiment differs from the one of ", name,
                                                   ": a resumed run may change only ", kFreeOnResume));
  }
  const int members = ResolveExperiment(*written).members_size();
  const auto of_all = [members](const v1::EpochRecord& epoch) { return epoch.members_size() == members; };
  if (checkpoint.totals_size() != members || !std::all_of(checkpoint.open().begin(), checkpoint.open().end(), of_all) ||
      !std::all_of(checkpoint.pending().begin(), checkpoint.pending().end(), of_all)) {
    return absl::DataLossError(absl::StrCat(name, " has not the numbers of each of the run's ", members, " members"));
  }
  if (checkpoint.update() <= updates.LastUpdate()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("run.env_steps=", updates.env_steps, " ends at update ",
                                                 updates.LastUpdate(), ", but ", name, " is later"));
}

void CheckCheckpoint(const std::string& run_dir, const v1::LearnerCheckpoint& checkpoint, const std::string& run_id,
                     const std::string& fixed, const UpdateSchedule& updates,
                     const std::function<void(const std::string& file, const absl::Status& problem)>& report) {
  const std::string name = absl::StrCat("checkpoints/", checkpoint.update());
  const auto report_as = [&](const std::string& file, const absl::Status& status) {
    if (!status.ok()) report(file, Annotate(status, absl::StrCat(run_dir, "/", file)));
  };
  const absl::Status resumes = CheckResume(checkpoint, run_id, fixed, updates);
  report_as(absl::IsInvalidArgument(resumes) ? "experiment.textproto" : name, resumes);
  if (checkpoint.files().empty()) report_as(name, absl::DataLossError("it names no record files"));
  for (const v1::FileEnd& file : checkpoint.files()) {
    const absl::Status kept = CheckRunFile(run_dir, file.path(), {file.bytes(), file.sha256()});
    if (!kept.ok())
      report(file.path(), absl::Status(kept.code(), absl::StrCat(kept.message(), "; ", name, " names it")));
  }
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
