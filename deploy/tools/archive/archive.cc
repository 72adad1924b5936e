#include "deploy/tools/archive/archive.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

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
#include "common/config/sha256.h"
#include "deploy/tools/archive/cut.h"
#include "replay/sessions.h"

namespace datacom::archive {
namespace {

namespace fs = std::filesystem;

constexpr FileFormat kFormat = {"cut of an archive", "DCARCHIV", 1, "; restore it with the build that wrote it"};
constexpr char kCuts[] = "cuts/", kParts[] = "parts/";

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

// The numbers and names of the cuts, newest first.
std::vector<std::pair<uint64_t, std::string>> CutsOf(const std::map<std::string, uint64_t>& objects) {
  std::vector<std::pair<uint64_t, std::string>> cuts;
  for (const auto& [name, bytes] : objects) {
    uint64_t number = 0;
    if (absl::StartsWith(name, kCuts) && absl::SimpleAtoi(name.substr(sizeof kCuts - 1, 9), &number)) {
      cuts.emplace_back(number, name);
    }
  }
  std::sort(cuts.rbegin(), cuts.rend());
  return cuts;
}

absl::StatusOr<v1::ArchiveCut> ReadCut(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string content, ReadFramedFile(kFormat, file));
  v1::ArchiveCut cut;
  if (cut.ParseFromString(content)) return cut;
  return absl::DataLossError(absl::StrCat(file, ": damaged"));
}

absl::StatusOr<Newest> FindNewestIn(const std::map<std::string, uint64_t>& objects, Store* store,
                                    const std::string& place, const std::string& scratch) {
  std::string damage;
  for (const auto& [number, name] : CutsOf(objects)) {
    RETURN_IF_ERROR(store->Download({name}, scratch));
    absl::StatusOr<v1::ArchiveCut> cut = ReadCut(absl::StrCat(scratch, "/", name));
    if (absl::IsFailedPrecondition(cut.status())) return cut.status();  // of another version
    const std::string missing = cut.ok() ? Missing(*cut, objects) : std::string(cut.status().message());
    if (missing.empty()) return Newest{number, name, *std::move(cut)};
    if (damage.empty()) damage = absl::StrCat(name, cut.ok() ? " lacks " : ": ", missing);
  }
  if (damage.empty()) return Newest{};
  return absl::DataLossError(absl::StrCat(place, ": no cut is whole; the newest, ", damage));
}

std::string OwnerFile(const std::string& run_dir) { return run_dir + "/archive/owner"; }

// The number that makes the folder an owner; 0 when it has none.
uint64_t OwnerOf(const std::string& run_dir) {
  uint64_t owner = 0;
  const absl::StatusOr<std::string> text = ReadFile(OwnerFile(run_dir));
  return text.ok() && absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &owner) ? owner : 0;
}

absl::StatusOr<uint64_t> BecomeOwner(const std::string& run_dir) {
  const uint64_t owner = SystemRandomNumber() | 1;
  RETURN_IF_ERROR(MakeFolders(run_dir + "/archive"));
  RETURN_IF_ERROR(WriteFileAtomically(OwnerFile(run_dir), absl::StrCat(owner, "\n")));
  return owner;
}

// Whether the folder is the run of the cut and owns the archive.
absl::Status CheckOwns(const std::string& run_dir, const std::string& place, const v1::ArchiveCut& cut) {
  ASSIGN_OR_RETURN(const std::string line, ReadFile(run_dir + "/run_id"));
  const absl::string_view id = absl::StripAsciiWhitespace(line);
  if (id != cut.run_id()) {
    return absl::AlreadyExistsError(absl::StrCat(place, " holds run ", cut.run_id(), ", not ", id, " of ", run_dir,
                                                 "; name another place, or resume that run"));
  }
  bool known = OwnerOf(run_dir) == cut.owner();
  if (const auto sessions = replay::SessionTable::Read(run_dir + "/replay"); known && sessions.ok()) {
    const auto& starts = sessions->starts();  // two copies of the folder have the same owner
    known = cut.replay_start() == 0 || std::find(starts.begin(), starts.end(), cut.replay_start()) != starts.end();
  }
  if (known) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(place, " holds update ", cut.update(), " of another copy of run ", id, ", which went on without ",
                   run_dir, "; resume the archive into a new folder, or name another place for this copy"));
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

// A path of a cut may not leave the folder.
absl::Status CheckPaths(const v1::ArchiveCut& cut, const std::string& place) {
  for (const v1::ArchivedFile& file : cut.files()) {
    const fs::path path(file.path());
    if (!path.is_absolute() && !path.empty() && std::find(path.begin(), path.end(), "..") == path.end()) continue;
    return absl::DataLossError(absl::StrCat(place, ": path \"", file.path(), "\" is outside the run folder"));
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

absl::StatusOr<Copied> CopyNew(const std::string& run_dir, const std::string& place) {
  ASSIGN_OR_RETURN(const auto store, Store::Open(place));
  ASSIGN_OR_RETURN(const auto there, store->List());
  const std::string folder = run_dir + "/archive/";
  ASSIGN_OR_RETURN(const Newest newest, FindNewestIn(there, store.get(), place, Scratch(folder + "cuts").folder()));
  uint64_t owner = OwnerOf(run_dir);
  if (newest.number > 0) {
    RETURN_IF_ERROR(CheckOwns(run_dir, place, newest.cut));
  } else if (owner == 0) {
    ASSIGN_OR_RETURN(owner, BecomeOwner(run_dir));
  }
  const Scratch spool(folder + "spool");
  ASSIGN_OR_RETURN(std::optional<v1::ArchiveCut> cut, TakeCut(run_dir, newest.cut, spool.folder()));
  if (!cut) {
    return absl::FailedPreconditionError(absl::StrCat(run_dir, ": no checkpoint yet, so there is nothing to resume"));
  }
  cut->set_owner(owner);
  Copied copied{.update = cut->update()};
  const std::map<std::string, uint64_t> needed = ObjectsOf(*cut), former = ObjectsOf(newest.cut);
  for (const v1::ArchivedFile& file : cut->files()) copied.all_bytes += file.bytes();
  if (cut->SerializeAsString() == newest.cut.SerializeAsString()) return copied;
  for (const auto& [name, bytes] : needed) {
    if (former.count(name) > 0) continue;
    ++copied.objects;
    copied.bytes += bytes;
  }
  if (copied.objects > 0) RETURN_IF_ERROR(store->Upload(spool.folder()));
  RETURN_IF_ERROR(WriteCut(*cut, newest.number + 1, folder + "cuts", store.get()));
  std::vector<std::string> old;
  for (const auto& [name, bytes] : there) {
    const bool ours = absl::StartsWith(name, kParts) || absl::StartsWith(name, kCuts);
    if (ours && needed.count(name) == 0 && former.count(name) == 0 && name != newest.name) old.push_back(name);
  }
  RETURN_IF_ERROR(Annotate(store->Delete(old), "old parts stay"));
  return copied;
}

}  // namespace

absl::StatusOr<Copied> CopyRun(const std::string& run_dir, const std::string& place) {
  const absl::StatusOr<Copied> copied = CopyNew(run_dir, place);
  const std::string file = run_dir + "/archive/state";
  v1::ArchiveState state;
  if (const auto before = ReadFile(file); before.ok()) state.ParseFromString(*before);
  if (state.place() != place) state.Clear();
  state.set_place(place);
  state.set_taken(absl::IsAlreadyExists(copied.status()));
  state.set_error(copied.ok() ? "" : std::string(copied.status().message()));
  if (copied.ok()) {
    state.set_update(copied->update);
    state.set_seconds(absl::ToUnixSeconds(absl::Now()));
  }
  RETURN_IF_ERROR(MakeFolders(run_dir + "/archive"));
  RETURN_IF_ERROR(WriteFileAtomically(file, state.SerializeAsString()));
  return copied;
}

absl::StatusOr<Newest> FindNewest(Store* store, const std::string& place) {
  const Scratch cuts(fs::temp_directory_path() / absl::StrCat("datacom-archive-", ::getpid()));
  ASSIGN_OR_RETURN(const auto objects, store->List());
  return FindNewestIn(objects, store, place, cuts.folder());
}

absl::StatusOr<v1::ArchiveCut> Restore(const std::string& place, const std::string& run_dir, bool own) {
  std::error_code error;
  if (fs::exists(run_dir, error) && !fs::is_empty(run_dir, error)) {
    return absl::InvalidArgumentError(absl::StrCat(run_dir, ": not empty; an archive is copied to a new folder"));
  }
  ASSIGN_OR_RETURN(const auto store, Store::Open(place));
  const Scratch made(run_dir + ".restoring");
  const std::string objects = made.folder() + "/objects", run = made.folder() + "/run";
  ASSIGN_OR_RETURN(const Newest newest, FindNewest(store.get(), place));
  if (newest.number == 0) return absl::NotFoundError(absl::StrCat(place, ": no archive of a run"));
  RETURN_IF_ERROR(CheckPaths(newest.cut, place));
  std::vector<std::string> names;
  for (const auto& [name, bytes] : ObjectsOf(newest.cut)) names.push_back(name);
  RETURN_IF_ERROR(store->Download(names, objects));
  for (const v1::ArchivedFile& file : newest.cut.files()) {
    RETURN_IF_ERROR(Annotate(WriteParts(file, objects, absl::StrCat(run, "/", file.path())), place));
    for (const v1::ArchivedPart& part : file.parts()) {
      fs::remove(absl::StrCat(objects, "/", ObjectOf(file.path(), part)), error);
    }
  }
  v1::ArchiveCut cut = newest.cut;
  if (own) {
    ASSIGN_OR_RETURN(const uint64_t owner, BecomeOwner(run));
    cut.set_owner(owner);
    RETURN_IF_ERROR(WriteCut(cut, newest.number + 1, made.folder() + "/cuts", store.get()));
  }
  fs::remove(run_dir, error);  // an empty folder
  RETURN_IF_ERROR(MakeFolders(fs::absolute(run_dir).parent_path().string()));
  fs::rename(run, run_dir, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("rename ", run));
  RETURN_IF_ERROR(SyncFile(fs::absolute(run_dir).parent_path().string()));
  return cut;
}

}  // namespace datacom::archive
// SPDX-License-Identifier: Apache-2.0
