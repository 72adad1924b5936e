#include "deploy/tools/archive/archive.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/framed_file.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/config/sha256.h"
#include "common/config/task_files.h"
#include "common/records/archive_place.h"
#include "common/records/checkpoint.h"
#include "datacom/v1/experiment.pb.h"
#include "deploy/tools/archive/cut.h"
#include "replay/sessions.h"

namespace datacom::archive {
namespace {

namespace fs = std::filesystem;

constexpr FileFormat kFormat = {"cut of an archive", "DCARCHIV", 1, "; restore it with the build that wrote it"};
constexpr char kCuts[] = "cuts/";
constexpr char kExperiment[] = "experiment.textproto", kRestoring[] = "/.restoring", kOwner[] = "/archive/owner";

std::string CutName(uint64_t number, uint64_t update) { return absl::StrFormat("%s%09d-%d", kCuts, number, update); }

// The objects that a cut needs, with their sizes.
std::map<std::string, uint64_t> ObjectsOf(const v1::ArchiveCut& cut) {
  std::map<std::string, uint64_t> objects;
  for (const v1::ArchivedFile& file : cut.files()) {
    for (const v1::ArchivedPart& part : file.parts()) objects[ObjectOf(file.path(), part)] = part.bytes();
  }
  return objects;
}

// The first object that is missing or has another size; empty when all are there.
std::string Missing(const v1::ArchiveCut& cut, const std::map<std::string, uint64_t>& there) {
  for (const auto& [name, bytes] : ObjectsOf(cut)) {
    const auto found = there.find(name);
    if (found == there.end() || found->second != bytes) return name;
  }
  return "";
}

// Whether the name is one that an object gets here, or that an interrupted write to a folder leaves. A place may hold
// files of others.
bool IsOurs(const std::string& name) {
  static const std::regex* const kNames =
      new std::regex("(cuts/\\d{9,}-\\d+|parts/.+/\\d+-[0-9a-f]{16})(\\.(\\d+\\.)?tmp)?");
  return std::regex_match(name, *kNames);
}

// The numbers and names of the cuts, newest first.
std::vector<std::pair<uint64_t, std::string>> CutsOf(const std::map<std::string, uint64_t>& objects) {
  std::vector<std::pair<uint64_t, std::string>> cuts;
  for (const auto& [name, bytes] : objects) {
    uint64_t number = 0;
    if (absl::EndsWith(name, ".tmp") || !IsOurs(name)) continue;
    if (absl::StartsWith(name, kCuts) && absl::SimpleAtoi(name.substr(sizeof kCuts - 1, 9), &number)) {
      cuts.emplace_back(number, name);
    }
  }
  std::sort(cuts.rbegin(), cuts.rend());
  return cuts;
}

// What a cut names may not leave the folder, neither as a file nor as an object.
absl::Status CheckNames(const v1::ArchiveCut& cut, const std::string& place) {
  RETURN_IF_ERROR(CheckFolderName(place, cut.run_id()));
  for (const v1::ArchivedFile& file : cut.files()) {
    RETURN_IF_ERROR(CheckFolderName(place, file.path()));
    const bool sums = std::all_of(file.parts().begin(), file.parts().end(), [](const v1::ArchivedPart& part) {
      return part.sha256().size() == 64 &&
             std::all_of(part.sha256().begin(), part.sha256().end(), absl::ascii_isxdigit);
    });
    if (sums && IsBelowRun(file.path())) continue;
    return absl::DataLossError(
        absl::StrCat(place, ": path \"", file.path(), "\" or a sum of its parts is none of a run folder"));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::ArchiveCut> ReadCut(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string content, ReadFramedFile(kFormat, file));
  v1::ArchiveCut cut;
  if (!cut.ParseFromString(content)) return absl::DataLossError(absl::StrCat(file, ": damaged"));
  RETURN_IF_ERROR(CheckNames(cut, file));
  return cut;
}

// The number that makes the folder an owner; 0 when it has none.
absl::StatusOr<uint64_t> OwnerOf(const std::string& run_dir) {
  uint64_t owner = 0;
  const absl::StatusOr<std::string> text = ReadFile(run_dir + kOwner);
  if (absl::IsNotFound(text.status())) return owner;
  RETURN_IF_ERROR(text.status());
  return absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &owner) ? owner : 0;
}

absl::StatusOr<uint64_t> BecomeOwner(const std::string& run_dir) {
  const uint64_t owner = SystemRandomNumber() | 1;
  RETURN_IF_ERROR(MakeFolders(run_dir + "/archive"));
  RETURN_IF_ERROR(WriteFileAtomically(run_dir + kOwner, absl::StrCat(owner, "\n")));
  return owner;
}

// Whether the folder is in an earlier state than the cut, e.g. a backup that was put back.
absl::StatusOr<bool> IsOlder(const std::string& run_dir, const v1::ArchiveCut& cut) {
  ASSIGN_OR_RETURN(const uint32_t starts, LastIncarnation(run_dir + "/checkpoints/incarnation"));
  if (starts != cut.incarnation()) return starts < cut.incarnation();
  if (cut.update() == 0) {  // it stays 0 during pre-training
    const absl::StatusOr<Checkpoint> own = CheckpointStore(run_dir + "/checkpoints").Load(0);
    return own.ok() && own->learner.pretrain_update() < cut.pretrain_update();
  }
  return CheckpointStore(run_dir + "/checkpoints").Reached().value_or(0) < cut.update();
}

// Whether the folder is the run of the cut and owns the archive; if not, what is different.
absl::StatusOr<std::string> WhyNotOwner(const std::string& run_dir, const std::string& place,
                                        const v1::ArchiveCut& cut) {
  ASSIGN_OR_RETURN(const std::string id, ReadRunId(run_dir));
  if (id != cut.run_id()) {
    return absl::StrCat(place, " holds run ", cut.run_id(), ", not ", id, " of ", run_dir,
                        "; name another place, or resume that run");
  }
  ASSIGN_OR_RETURN(const uint64_t owner, OwnerOf(run_dir));
  bool known = owner == cut.owner();
  if (const auto sessions = replay::SessionTable::Read(run_dir + "/replay"); known && sessions.ok()) {
    const auto& starts = sessions->starts();  // two copies of the folder have the same owner
    known = cut.replay_start() == 0 || std::find(starts.begin(), starts.end(), cut.replay_start()) != starts.end();
  }
  ASSIGN_OR_RETURN(const bool older, IsOlder(run_dir, cut));
  if (known && older) {
    return absl::StrCat(run_dir, " is an older copy of run ", id, ": ", place, " holds update ", cut.update(),
                        " of start ", cut.incarnation(),
                        "; resume the archive into a new folder, or name another place for this copy");
  }
  if (known) return "";
  return absl::StrCat(place, " holds update ", cut.update(), " of another copy of run ", id, ", which went on without ",
                      run_dir, "; resume the archive into a new folder, or name another place for this copy");
}

class Scratch {
 public:
  explicit Scratch(std::string folder) : folder_(std::move(folder)) { Remove(); }
  ~Scratch() { Remove(); }
  const std::string& folder() const { return folder_; }

 private:
  void Remove() const {
    std::error_code error;  // what stays is replaced by the next one
    fs::remove_all(folder_, error);
  }
  const std::string folder_;
};

absl::Status WriteParts(const v1::ArchivedFile& file, const std::string& objects, const std::string& path) {
  RETURN_IF_ERROR(MakeFolders(fs::path(path).parent_path().string()));
  const int out = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (out < 0) return ErrnoStatus(errno, absl::StrCat("create ", path));
  const auto write = [&]() -> absl::Status {
    if (file.bytes() > 0) {
      if (const int error = ::posix_fallocate(out, 0, static_cast<off_t>(file.bytes())); error != 0) {
        return ErrnoStatus(error, absl::StrCat("reserve ", file.bytes(), " bytes for ", path));
      }
    }
    for (const v1::ArchivedPart& part : file.parts()) {
      const std::string object = ObjectOf(file.path(), part);
      ASSIGN_OR_RETURN(const std::string bytes, ReadFile(absl::StrCat(objects, "/", object)));
      if (bytes.size() != part.bytes() || Sha256Hex(bytes) != part.sha256() ||
          part.offset() + part.bytes() > file.bytes()) {
        return absl::DataLossError(absl::StrCat("object ", object, ": other bytes than were archived"));
      }
      if (::pwrite(out, bytes.data(), bytes.size(), static_cast<off_t>(part.offset())) !=
          static_cast<ssize_t>(bytes.size())) {
        return ErrnoStatus(errno, absl::StrCat("write ", path));
      }
    }
    return ::fsync(out) == 0 ? absl::OkStatus() : ErrnoStatus(errno, absl::StrCat("sync ", path));
  };
  const absl::Status status = write();
  ::close(out);
  return status;
}

// Writes all files, and removes the objects of each one that is written.
absl::Status WriteFiles(const v1::ArchiveCut& cut, const std::string& objects, const std::string& run) {
  std::error_code error;
  for (const v1::ArchivedFile& file : cut.files()) {
    RETURN_IF_ERROR(WriteParts(file, objects, absl::StrCat(run, "/", file.path())));
    for (const v1::ArchivedPart& part : file.parts()) {
      fs::remove(absl::StrCat(objects, "/", ObjectOf(file.path(), part)), error);
    }
  }
  return absl::OkStatus();
}

absl::Status WriteCut(const v1::ArchiveCut& cut, uint64_t number, const std::string& scratch, Store* store) {
  const Scratch list(scratch);
  const std::string file = absl::StrCat(scratch, "/", CutName(number, cut.update()));
  RETURN_IF_ERROR(MakeFolders(fs::path(file).parent_path().string()));
  RETURN_IF_ERROR(WriteFramedFile(kFormat, file, cut.SerializeAsString()));
  return store->Upload(scratch);
}

// Waits until no other process copies this run.
absl::StatusOr<std::unique_ptr<FolderLock>> WaitForLock(const std::string& folder) {
  RETURN_IF_ERROR(MakeFolders(folder));
  for (;;) {
    absl::StatusOr<std::unique_ptr<FolderLock>> lock = FolderLock::Take(folder);
    if (!absl::IsFailedPrecondition(lock.status())) return lock;
    absl::SleepFor(absl::Milliseconds(200));
  }
}

// After the upload of a cut's parts: whether they are there, and nobody has written a cut meanwhile.
absl::Status CheckUploaded(const v1::ArchiveCut& cut, const Newest& before, const std::string& place, Store* store) {
  ASSIGN_OR_RETURN(const auto there, store->List());
  if (const std::string missing = Missing(cut, there); !missing.empty()) {
    return absl::UnavailableError(absl::StrCat(place, ": upload: ", missing, " is not there"));
  }
  const auto cuts = CutsOf(there);
  if (cuts.empty() || cuts.front().first <= before.last) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(place, ": ", cuts.front().second, " was written meanwhile"));
}

// `refusal` receives why another folder owns the archive; then the result is FAILED_PRECONDITION.
absl::StatusOr<Copied> CopyNew(const std::string& run_dir, const std::string& place, bool only_check,
                               std::string* refusal) {
  ASSIGN_OR_RETURN(const auto store, Store::Open(place));
  ASSIGN_OR_RETURN(const Newest newest, FindNewest(store.get(), place));
  if (newest.last > 0) {
    ASSIGN_OR_RETURN(*refusal, WhyNotOwner(run_dir, place, newest.cut));
    if (!refusal->empty()) return absl::FailedPreconditionError(*refusal);
  }
  Copied copied;
  copied.update = newest.cut.update();
  if (only_check) return copied;
  ASSIGN_OR_RETURN(uint64_t owner, OwnerOf(run_dir));
  if (owner == 0) {
    ASSIGN_OR_RETURN(owner, BecomeOwner(run_dir));
  }
  const std::string folder = run_dir + "/archive/";
  const Scratch spool(folder + "spool");
  ASSIGN_OR_RETURN(std::optional<v1::ArchiveCut> cut, TakeCut(run_dir, newest.cut, spool.folder()));
  if (!cut) {
    return absl::FailedPreconditionError(absl::StrCat(run_dir, ": no checkpoint yet, so there is nothing to resume"));
  }
  cut->set_owner(owner);
  copied.update = cut->update();
  const std::map<std::string, uint64_t> needed = ObjectsOf(*cut), former = ObjectsOf(newest.cut);
  for (const v1::ArchivedFile& file : cut->files()) copied.all_bytes += file.bytes();
  if (cut->SerializeAsString() == newest.cut.SerializeAsString()) return copied;
  for (const auto& [name, bytes] : needed) {
    if (former.count(name) > 0) continue;
    ++copied.objects;
    copied.bytes += bytes;
  }
  if (copied.objects > 0) RETURN_IF_ERROR(store->Upload(spool.folder()));
  RETURN_IF_ERROR(CheckUploaded(*cut, newest, place, store.get()));
  RETURN_IF_ERROR(WriteCut(*cut, newest.last + 1, folder + "cut", store.get()));
  std::vector<std::string> old;
  for (const auto& [name, bytes] : newest.objects) {
    if (IsOurs(name) && needed.count(name) == 0 && former.count(name) == 0 && name != newest.name) old.push_back(name);
  }
  // A bucket may forbid it; the cut is whole without it, and the next one tries again, with one object first.
  absl::Status deleted = old.empty() ? absl::OkStatus() : store->Delete({old.front()});
  if (deleted.ok() && old.size() > 1) deleted = store->Delete({old.begin() + 1, old.end()});
  copied.kept = std::string(deleted.message());
  return copied;
}

// The most bytes that a restore has on the disk: all objects at first, and then the files, whose objects go one by one.
uint64_t MostBytes(const v1::ArchiveCut& cut) {
  uint64_t held = 0;
  for (const auto& [name, bytes] : ObjectsOf(cut)) held += bytes;
  uint64_t most = held;
  for (const v1::ArchivedFile& file : cut.files()) {
    most = std::max(most, held += file.bytes());
    for (const v1::ArchivedPart& part : file.parts()) held -= std::min(held, part.bytes());
  }
  return most;
}

// Downloads what is not there yet. NOT_FOUND when the archive has been changed meanwhile.
absl::Status DownloadParts(const v1::ArchiveCut& cut, const std::string& folder, Store* store) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : ObjectsOf(cut)) {
    std::error_code error;
    if (fs::file_size(absl::StrCat(folder, "/", name), error) != bytes || error) names.push_back(name);
  }
  RETURN_IF_ERROR(store->Download(names, folder));
  for (const std::string& name : names) {
    if (!FileExists(absl::StrCat(folder, "/", name))) return absl::NotFoundError(absl::StrCat(name, ": is gone"));
  }
  return absl::OkStatus();
}

// Whether the folder has an experiment whose run has not begun. Of a run that an interrupted restore has moved there
// partly, the name is missing, too.
bool IsPrepared(const std::string& run_dir) {
  const auto has_none = [&run_dir](const char* folder) {
    const auto names = ListFolder(run_dir + folder);
    return names.ok() && names->empty();
  };
  std::error_code error;
  return FileExists(absl::StrCat(run_dir, "/", kExperiment)) && !FileExists(run_dir + "/run_id") &&
         (fs::exists(run_dir + kRestoring, error) || (has_none("/checkpoints") && has_none("/replay")));
}

absl::StatusOr<v1::Experiment> LoadCompared(const std::string& file) {
  ASSIGN_OR_RETURN(v1::Experiment experiment, LoadExperiment(file, ""));
  experiment = ResolveExperiment(std::move(experiment));
  experiment.clear_description();
  experiment.mutable_run()->clear_env_steps();
  DropTaskFiles(experiment.mutable_task_options());  // their sums stay
  return experiment;
}

// INVALID_ARGUMENT, naming the first difference, unless the cut is of the experiment for which the folder is prepared.
// Only steps and description may differ.
absl::Status CheckPrepared(const std::string& run_dir, const std::string& place, const v1::ArchiveCut& cut,
                           Store* store) {
  const std::string begun = run_dir + kRestoring, held = absl::StrCat(begun, "/", kExperiment);
  for (const v1::ArchivedFile& file : cut.files()) {
    if (file.path() != kExperiment) continue;
    v1::ArchiveCut only;
    *only.add_files() = file;
    RETURN_IF_ERROR(DownloadParts(only, begun + "/objects", store));
    RETURN_IF_ERROR(Annotate(WriteParts(file, begun + "/objects", held), place));
  }
  ASSIGN_OR_RETURN(const v1::Experiment archived, LoadCompared(held));
  ASSIGN_OR_RETURN(const v1::Experiment planned, LoadCompared(absl::StrCat(run_dir, "/", kExperiment)));
  const std::string difference = DifferenceOf(archived, planned);
  if (difference.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(place, " holds run ", cut.run_id(), " of another experiment than ",
                                                 run_dir, ": ", difference.substr(0, difference.find('\n')),
                                                 "; name another place, or repeat the options of that run"));
}

// Removes what an interrupted restore has left, and nothing of the user.
void RemoveMoved(const v1::ArchiveCut& cut, const std::string& run_dir) {
  std::error_code error;  // what stays is in the way
  for (const v1::ArchivedFile& file : cut.files())
    fs::remove_all(fs::path(run_dir) / *fs::path(file.path()).begin(), error);
  for (const char* folder : {"/archive", kRestoring}) fs::remove_all(run_dir + folder, error);
}

// Moves the entries of a restored run, the file `last` after all others.
absl::Status MoveRun(const std::string& run, const std::string& run_dir, const std::string& last) {
  ASSIGN_OR_RETURN(std::vector<std::string> entries, ListFolder(run));
  std::partition(entries.begin(), entries.end(), [&last](const std::string& name) { return name != last; });
  std::error_code error;
  for (const std::string& name : entries) {
    const fs::path to = fs::path(run_dir) / name;
    if (fs::is_directory(to, error)) fs::remove_all(to, error);  // empty, or of a call that was interrupted
    fs::rename(fs::path(run) / name, to, error);
    if (error) return ErrnoStatus(error.value(), absl::StrCat("move the run to ", run_dir));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Copied> CopyRun(const std::string& given, const std::string& place, const CopyOptions& options) {
  const std::string run_dir = WithoutSlash(given), file = run_dir + "/archive/state";
  RETURN_IF_ERROR(CheckApart(place, run_dir));
  RETURN_IF_ERROR(CheckNoLinks(run_dir));  // what they name is not the run's to copy, or to replace
  std::string refusal;
  if (options.only_check) return CopyNew(run_dir, place, true, &refusal);
  ASSIGN_OR_RETURN(const auto lock, WaitForLock(run_dir + "/archive"));
  if (!options.keep_state) return CopyNew(run_dir, place, false, &refusal);
  v1::ArchiveState state;
  if (const auto before = ReadFile(file); before.ok()) state.ParseFromString(*before);
  if (state.place() != place) state.Clear();
  state.set_place(place);
  state.clear_taken();
  RETURN_IF_ERROR(WriteFileAtomically(file, state.SerializeAsString()));
  const absl::StatusOr<Copied> copied = CopyNew(run_dir, place, false, &refusal);
  state.set_taken(!refusal.empty());
  state.set_error(copied.ok() ? "" : std::string(copied.status().message()));
  if (copied.ok()) {
    state.set_update(copied->update);
    if (copied->kept) state.set_kept(*copied->kept);
    state.set_seconds(absl::ToUnixSeconds(absl::Now()));
  }
  RETURN_IF_ERROR(WriteFileAtomically(file, state.SerializeAsString()));
  return copied;
}

absl::StatusOr<Newest> FindNewest(Store* store, const std::string& place) {
  ASSIGN_OR_RETURN(std::string folder, TemporaryFolder());
  folder += "/datacom-archive-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return ErrnoStatus(errno, absl::StrCat("make ", folder));
  const Scratch downloaded(folder);
  Newest newest;
  ASSIGN_OR_RETURN(newest.objects, store->List());
  std::string damage;
  const auto cuts = CutsOf(newest.objects);
  for (const auto& [number, name] : cuts) {
    RETURN_IF_ERROR(store->Download({name}, folder));
    absl::StatusOr<v1::ArchiveCut> cut = ReadCut(absl::StrCat(folder, "/", name));
    if (absl::IsFailedPrecondition(cut.status())) return cut.status();  // of another version
    const std::string missing = cut.ok() ? Missing(*cut, newest.objects) : std::string(cut.status().message());
    if (missing.empty()) {
      newest.last = cuts.front().first;
      newest.name = name;
      newest.cut = *std::move(cut);
      return newest;
    }
    if (damage.empty()) damage = absl::StrCat(name, cut.ok() ? " lacks " : ": ", missing);
  }
  if (damage.empty()) return newest;
  return absl::DataLossError(absl::StrCat(place, ": no cut is whole; the newest, ", damage));
}

absl::StatusOr<v1::ArchiveCut> Restore(const std::string& place, const std::string& given, bool own) {
  constexpr int kAttempts = 5;
  const std::string run_dir = WithoutSlash(given), begun = run_dir + kRestoring;
  RETURN_IF_ERROR(CheckApart(place, run_dir));
  ASSIGN_OR_RETURN(const auto store, Store::Open(place));
  ASSIGN_OR_RETURN(Newest newest, FindNewest(store.get(), place));
  if (newest.last == 0) return absl::NotFoundError(absl::StrCat(place, ": no archive of a run"));
  std::error_code error;
  const bool made = !fs::exists(run_dir, error);
  RETURN_IF_ERROR(MakeFolders(run_dir));
  // Two calls would remove each other's files. Where the file system locks no folders, nothing keeps them apart.
  const absl::StatusOr<std::unique_ptr<FolderLock>> lock = FolderLock::TakeFile(run_dir);
  if (absl::IsFailedPrecondition(lock.status()))
    return absl::FailedPreconditionError(absl::StrCat(run_dir, ": another process copies a run to it"));
  const bool prepared = own && IsPrepared(run_dir);
  // The folder itself may be a volume that cannot be renamed, so all happens inside of it.
  const std::string last = prepared ? "run_id" : kExperiment;  // a folder without it counts as prepared, or as empty
  if (prepared) {
    fs::remove_all(begun, error);
  } else if (fs::exists(begun, error) && !FileExists(run_dir + "/" + last)) {  // an interrupted call: begin again
    RemoveMoved(newest.cut, run_dir);
  }
  if (!prepared && !fs::is_empty(run_dir, error)) {
    return absl::InvalidArgumentError(absl::StrCat(run_dir, ": not empty; an archive is copied to a new folder"));
  }
  RETURN_IF_ERROR(MakeFolders(begun));
  const auto give_up = [&](const absl::Status& why) {
    fs::remove_all(begun, error);
    if (made) fs::remove(run_dir, error);  // stays with what a user has put there meanwhile
    return why;
  };
  if (absl::Status same = prepared ? CheckPrepared(run_dir, place, newest.cut, store.get()) : absl::OkStatus();
      !same.ok()) {
    return give_up(same);
  }
  const std::string objects = begun + "/objects", run = begun + "/run";
  ASSIGN_OR_RETURN(const uint64_t free, FreeBytes(begun));
  if (const uint64_t most = MostBytes(newest.cut); free < most)
    return give_up(absl::ResourceExhaustedError(NoSpaceMessage(run, most)));
  if (own) {  // first, so that a former owner that still trains deletes nothing
    ASSIGN_OR_RETURN(const uint64_t owner, BecomeOwner(run));
    newest.cut.set_owner(owner);
    // Its copy that may be under way gets a smaller number.
    RETURN_IF_ERROR(WriteCut(newest.cut, newest.last + 2, begun + "/cut", store.get()));
  }
  absl::Status got = DownloadParts(newest.cut, objects, store.get());
  for (int attempt = 1; absl::IsNotFound(got) && !own && attempt < kAttempts; ++attempt) {
    ASSIGN_OR_RETURN(newest, FindNewest(store.get(), place));
    got = DownloadParts(newest.cut, objects, store.get());
  }
  if (got.ok()) got = Annotate(WriteFiles(newest.cut, objects, run), place);
  if (!got.ok()) return give_up(got);
  RETURN_IF_ERROR(MoveRun(run, run_dir, last));
  fs::remove_all(begun, error);
  RETURN_IF_ERROR(SyncFile(run_dir));
  return newest.cut;
}

}  // namespace datacom::archive
// SPDX-License-Identifier: Apache-2.0
