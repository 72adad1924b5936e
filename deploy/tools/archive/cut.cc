#include "deploy/tools/archive/cut.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/sha256.h"
#include "common/config/task_files.h"
#include "common/records/checkpoint.h"
#include "common/transitions/replay_layout.h"
#include "datacom/v1/checkpoint.pb.h"
#include "datacom/v1/experiment.pb.h"
#include "replay/mapped_file.h"
#include "replay/ring.h"
#include "replay/sessions.h"
#include "replay/settings.h"

namespace datacom::archive {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 20;
constexpr absl::Duration kPause = absl::Milliseconds(100);
constexpr uint64_t kLeftFree = uint64_t{64} << 20;
constexpr char kSessions[] = "replay/sessions", kCredit[] = "replay/credit", kIncarnation[] = "checkpoints/incarnation";

class Cutter {
 public:
  Cutter(std::string run_dir, const v1::ArchiveCut& former, std::string spool)
      : run_dir_(std::move(run_dir)), spool_(std::move(spool)), former_(former) {
    for (const v1::ArchivedFile& file : former.files()) {
      before_[file.path()] = &file;
      for (const v1::ArchivedPart& part : file.parts()) objects_.insert(ObjectOf(file.path(), part));
    }
  }

  // ABORTED when a part changed that must not; OUT_OF_RANGE when records were overwritten: then take another cut.
  absl::StatusOr<v1::ArchiveCut> Take(const v1::LearnerCheckpoint& checkpoint);

 private:
  std::string Path(const std::string& file) const { return run_dir_ + "/" + file; }
  absl::StatusOr<OpenedFile> Open(const std::string& file) const {
    return OpenedFile::Open(Path(file), Links::kRefuse);
  }
  v1::ArchivedFile* Add(const std::string& path, uint64_t bytes);
  // Whether learner and replay go on as they were at the former cut. Else the folder may be an older state of the run,
  // whose files have gone another way since.
  bool same_processes() const {
    return former_.incarnation() == cut_.incarnation() && former_.replay_start() == cut_.replay_start();
  }
  // The same file in the former cut; null if it had none.
  const v1::ArchivedFile* Before(const std::string& path) const;
  absl::Status AddPart(absl::string_view bytes, v1::ArchivedFile* file, v1::ArchivedPart part);
  absl::Status AddRange(const OpenedFile& source, uint64_t from, uint64_t to, v1::ArchivedFile* file);
  absl::Status AddContent(const std::string& path, absl::string_view content);
  absl::Status AddWhole(const std::string& path);
  absl::Status AddIfThere(const std::string& path) {
    return FileExists(Path(path)) ? AddWhole(path) : absl::OkStatus();
  }
  absl::Status AddGrowing(const std::string& path, uint64_t bytes);
  absl::Status AddPolicies(const v1::FileEnd& end);
  absl::Status AddCheckpoint(uint64_t update);
  absl::Status AddReplay();
  absl::Status AddCredit();
  absl::Status AddRing(const std::string& path, uint32_t member, uint64_t record_bytes);
  absl::Status AddBlocks(const replay::Ring& ring, uint64_t from, uint64_t to, v1::ArchivedFile* file);
  absl::Status AddUnnamedPolicies(const v1::LearnerCheckpoint& checkpoint);
  absl::Status AddRest();

  const std::string run_dir_, spool_;
  const v1::ArchiveCut& former_;
  std::map<std::string, const v1::ArchivedFile*> before_;
  std::set<std::string> objects_;  // that need not be written
  uint64_t rows_seen_ = 0;         // rows of each member that the checkpoint's update has seen
  replay::ReplaySetup setup_;
  v1::ArchiveCut cut_;
};

v1::ArchivedFile* Cutter::Add(const std::string& path, uint64_t bytes) {
  v1::ArchivedFile* const file = cut_.add_files();
  file->set_path(path);
  file->set_bytes(bytes);
  return file;
}

const v1::ArchivedFile* Cutter::Before(const std::string& path) const {
  const auto found = before_.find(path);
  return found == before_.end() ? nullptr : found->second;
}

absl::Status Cutter::AddPart(absl::string_view bytes, v1::ArchivedFile* file, v1::ArchivedPart part) {
  part.set_bytes(bytes.size());
  part.set_sha256(Sha256Hex(bytes));
  *file->add_parts() = part;
  const std::string object = ObjectOf(file->path(), part);
  if (!objects_.insert(object).second) return absl::OkStatus();
  const std::string target = spool_ + "/" + object;
  ASSIGN_OR_RETURN(const uint64_t free, FreeBytes(run_dir_));  // the run needs it more than the archive
  if (const uint64_t wanted = bytes.size() + kLeftFree; free < wanted)
    return absl::ResourceExhaustedError(NoSpaceMessage(run_dir_ + "/archive", wanted));
  std::error_code error;  // the write fails, too
  fs::create_directories(fs::path(target).parent_path(), error);
  std::ofstream file_of_part(target, std::ios::binary);  // need not survive this process
  file_of_part.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file_of_part.close();
  return file_of_part ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("write ", target, ": failed"));
}

absl::Status Cutter::AddRange(const OpenedFile& source, uint64_t from, uint64_t to, v1::ArchivedFile* file) {
  while (from < to) {
    const uint64_t end = std::min(to, from + kMostPartBytes);
    ASSIGN_OR_RETURN(const std::string bytes, source.Read(from, end));
    if (bytes.size() < end - from)
      return absl::AbortedError(absl::StrCat(Path(file->path()), ": became shorter than ", end, " bytes"));
    v1::ArchivedPart part;
    part.set_offset(from);
    RETURN_IF_ERROR(AddPart(bytes, file, part));
    from = end;
  }
  return absl::OkStatus();
}

absl::Status Cutter::AddContent(const std::string& path, absl::string_view content) {
  return AddPart(content, Add(path, content.size()), {});
}

absl::Status Cutter::AddWhole(const std::string& path) {
  ASSIGN_OR_RETURN(const OpenedFile source, Open(path));
  return AddRange(source, 0, source.size(), Add(path, source.size()));
}

// A part that is not larger than what follows it becomes one with it.
absl::Status Cutter::AddGrowing(const std::string& path, uint64_t bytes) {
  ASSIGN_OR_RETURN(const OpenedFile source, Open(path));
  if (source.size() < bytes) {
    return absl::DataLossError(
        absl::StrCat(Path(path), ": ends at byte ", source.size(), ", the checkpoint says ", bytes));
  }
  v1::ArchivedFile* const file = Add(path, bytes);
  uint64_t from = 0;
  const v1::ArchivedFile* const before = Before(path);
  const bool same_start = same_processes();
  for (int i = 0; before != nullptr && i < before->parts_size(); ++i) {
    const v1::ArchivedPart& part = before->parts(i);
    if (part.offset() + part.bytes() > bytes) break;
    if (!same_start) {  // a learner that has resumed may have written the end of the file again
      ASSIGN_OR_RETURN(const std::string now, source.Read(part.offset(), part.offset() + part.bytes()));
      if (Sha256Hex(now) != part.sha256()) break;
    }
    *file->add_parts() = part;
    from = part.offset() + part.bytes();
  }
  while (from < bytes && file->parts_size() > 0) {
    const v1::ArchivedPart& last = *file->parts().rbegin();
    if (last.bytes() > bytes - from || bytes - last.offset() > kMostPartBytes) break;
    from = last.offset();
    file->mutable_parts()->RemoveLast();
  }
  return AddRange(source, from, bytes, file);
}

// The former cut may have other policies of this epoch: of an earlier learner, before this one ended the epoch.
absl::Status Cutter::AddPolicies(const v1::FileEnd& end) {
  const v1::ArchivedFile* const before = Before(end.path());
  if (before != nullptr && before->sha256() == end.sha256()) {
    *cut_.add_files() = *before;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckRunFile(run_dir_, end.path(), {end.bytes(), end.sha256()}));
  ASSIGN_OR_RETURN(const OpenedFile source, Open(end.path()));
  v1::ArchivedFile* const file = Add(end.path(), end.bytes());
  file->set_sha256(end.sha256());
  return AddRange(source, 0, end.bytes(), file);
}

absl::Status Cutter::AddCheckpoint(uint64_t update) {
  const std::string folder = CheckpointStore("checkpoints").Path(update);
  for (const char* file : {"learner.state", "algorithm.state", "state.sha256"}) {
    const absl::Status added = AddWhole(absl::StrCat(folder, "/", file));
    if (absl::IsNotFound(added)) return absl::AbortedError("the checkpoint was replaced by newer ones");
    RETURN_IF_ERROR(added);
  }
  return AddIfThere("checkpoints/updates");
}

// Word by word, as the replay writes it. Slots that were never used are zeros.
absl::Status Cutter::AddCredit() {
  RETURN_IF_ERROR(Open(kCredit).status());  // no link
  ASSIGN_OR_RETURN(const auto file, replay::MappedFile::OpenReadOnly(Path(kCredit)));
  std::string bytes = file->CopyWords(file->size());
  v1::ArchivedFile* const added = Add(kCredit, file->size());
  bytes.resize(bytes.find_last_not_of('\0') + 1);
  return AddPart(bytes, added, {});
}

absl::Status Cutter::AddBlocks(const replay::Ring& ring, uint64_t from, uint64_t to, v1::ArchivedFile* file) {
  const uint64_t most = std::max<uint64_t>(1, kMostPartBytes / RingBlockBytes(ring.record_bytes()));
  std::string records, bytes;
  while (from < to) {
    const uint64_t end = std::min({to, from + most, (from / ring.blocks() + 1) * ring.blocks()});
    bytes.clear();
    for (uint64_t block = from; block < end; ++block) {
      RETURN_IF_ERROR(ring.CopyBlock(block, (block + 1) * kRingBlockRecords, &records));
      bytes += ring.FrameBlock(block, records);
    }
    v1::ArchivedPart part;
    part.set_offset(ring.BlockOffset(from));
    part.set_block(from);
    part.set_blocks(end - from);
    RETURN_IF_ERROR(AddPart(bytes, file, part));
    from = end;
  }
  return absl::OkStatus();
}

absl::Status Cutter::AddRing(const std::string& path, uint32_t member, uint64_t record_bytes) {
  ASSIGN_OR_RETURN(const auto ring, replay::Ring::OpenShared({.path = Path(path),
                                                              .schema_fingerprint = setup_.schema.fingerprint(),
                                                              .record_bytes = record_bytes}));
  RETURN_IF_ERROR(ring->CheckBelongsTo(cut_.run_id(), member));
  uint64_t end = 0;
  ASSIGN_OR_RETURN(const std::string header, ring->CopyHeader(&end));
  v1::ArchivedFile* const file = Add(path, RingBytes(ring->kept(), setup_.options.layout.guard, record_bytes));
  // The learner draws from the newest `capacity` rows that the checkpoint has seen.
  if (absl::EndsWith(path, ".rows") && end > ring->kept() &&
      end - ring->kept() + setup_.options.layout.capacity > rows_seen_) {
    return absl::AbortedError("the replay has overwritten rows that the checkpoint needs");
  }
  const uint64_t first = (end - std::min(end, ring->kept())) / kRingBlockRecords, whole = end / kRingBlockRecords;
  uint64_t from = first;
  const v1::ArchivedFile* const before = Before(path);
  // A larger ring has other places, unless no row was overwritten before.
  if (before != nullptr && (before->bytes() == file->bytes() || (before->bytes() < file->bytes() && first == 0))) {
    for (const v1::ArchivedPart& part : before->parts()) {
      const uint64_t part_end = part.block() + part.blocks();
      if (part.blocks() == 0 || part_end <= first || part_end > whole) continue;
      if (same_processes()) {
        *file->add_parts() = part;
      } else if (part.block() >= from) {  // from the ring again; equal bytes have equal names and are not copied
        RETURN_IF_ERROR(AddBlocks(*ring, from, part.block(), file));
        RETURN_IF_ERROR(AddBlocks(*ring, part.block(), part_end, file));
      } else {
        continue;
      }
      from = part_end;
    }
  }
  while (from < whole && file->parts_size() > 0) {
    const v1::ArchivedPart& last = *file->parts().rbegin();
    const bool one_lap = last.block() / ring->blocks() == (whole - 1) / ring->blocks();
    const bool small = last.bytes() + (whole - from) * RingBlockBytes(record_bytes) <= kMostPartBytes;
    if (last.block() < first || last.blocks() > whole - from || !one_lap || !small) break;
    from = last.block();
    file->mutable_parts()->RemoveLast();
  }
  RETURN_IF_ERROR(AddBlocks(*ring, from, whole, file));
  if (end % kRingBlockRecords != 0) {
    std::string records;
    RETURN_IF_ERROR(ring->CopyBlock(whole, end, &records));
    v1::ArchivedPart part;
    part.set_offset(ring->BlockOffset(whole));
    part.set_block(whole);
    RETURN_IF_ERROR(AddPart(ring->FrameBlock(whole, records), file, part));
  }
  return AddPart(header, file, {});
}

absl::Status Cutter::AddReplay() {
  if (!FileExists(Path(kSessions))) {
    const bool archived = Before(kSessions) != nullptr;
    // On a cluster the replay has a folder of its own. `train` keeps it here, and writes run_id.
    if (!archived && (cut_.update() == 0 || !FileExists(Path("run_id")))) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(Path(kSessions), " is missing, but ",
                     archived ? "the archive has it and keeps its rows" : "a resume needs it and the rows beside it"));
  }
  ASSIGN_OR_RETURN(const std::string content, ReadFile(Path(kSessions)));
  ASSIGN_OR_RETURN(const v1::ReplaySessions sessions, replay::SessionTable::Read(Path("replay")));
  if (sessions.starts_size() > 0 && *sessions.starts().rbegin() != cut_.replay_start()) {
    return absl::AbortedError("the replay was started again");
  }
  RETURN_IF_ERROR(AddCredit());
  const ReplayLayout& layout = setup_.options.layout;
  for (uint32_t member = 0; member < setup_.options.members.size(); ++member) {
    const std::string prefix = absl::StrCat("replay/member_", member);
    RETURN_IF_ERROR(AddRing(prefix + ".failures", member, layout.failure_bytes()));
    RETURN_IF_ERROR(AddRing(prefix + ".rows", member, layout.row_bytes));
  }
  RETURN_IF_ERROR(AddIfThere("replay/finished"));
  ASSIGN_OR_RETURN(const std::string after, ReadFile(Path(kSessions)));
  if (after != content) return absl::AbortedError("sessions began or ended");
  return AddContent(kSessions, content);
}

// Policies of ended epochs that the checkpoint does not name: of an epoch that the end of the run has cut short.
absl::Status Cutter::AddUnnamedPolicies(const v1::LearnerCheckpoint& checkpoint) {
  std::set<std::string> named;
  for (const v1::FileEnd& file : checkpoint.files()) named.insert(file.path());
  for (const auto* epochs : {&checkpoint.open(), &checkpoint.pending()}) {
    for (const v1::EpochRecord& epoch : *epochs) {
      const std::string path = PoliciesPath(epoch.epoch());
      if (named.insert(path).second) RETURN_IF_ERROR(AddIfThere(path));
    }
  }
  return absl::OkStatus();
}

// What a run has besides, written once or as a whole. Nothing else that lies in its folder belongs to it.
absl::Status Cutter::AddRest() {
  std::set<std::string> files = {
      "build.txt",   "cluster/layout", "experiment.textproto", "feasibility_map.json", "film.html",
      "report.html", "run_id"};
  ASSIGN_OR_RETURN(const std::vector<std::string> task_files, ListFolder(Path(kTaskFilesFolder)));
  for (const std::string& name : task_files) files.insert(absl::StrCat(kTaskFilesFolder, "/", name));
  for (const std::string& path : files) {
    if (!absl::EndsWith(path, ".tmp")) RETURN_IF_ERROR(AddIfThere(path));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::ArchiveCut> Cutter::Take(const v1::LearnerCheckpoint& checkpoint) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, replay::ReadExperiment(Path("experiment.textproto")));
  ASSIGN_OR_RETURN(setup_, replay::SetUp(experiment));
  cut_.set_run_id(checkpoint.run_id());
  cut_.set_update(checkpoint.update());
  cut_.set_pretrain_update(checkpoint.pretrain_update());
  ASSIGN_OR_RETURN(const uint32_t incarnation, LastIncarnation(Path(kIncarnation)));
  cut_.set_incarnation(incarnation);
  RETURN_IF_ERROR(AddWhole(kIncarnation));
  RETURN_IF_ERROR(AddCheckpoint(checkpoint.update()));
  // It may have been replaced meanwhile by one of the same update.
  const absl::StatusOr<Checkpoint> again = CheckpointStore(Path("checkpoints")).Load(checkpoint.update());
  if (!again.ok() || again->learner.SerializeAsString() != checkpoint.SerializeAsString()) {
    return absl::AbortedError("the checkpoint was replaced");
  }
  rows_seen_ = setup_.options.limits.schedule.RowsSeen(checkpoint.update());
  if (const auto sessions = replay::SessionTable::Read(Path("replay")); sessions.ok() && sessions->starts_size() > 0) {
    cut_.set_replay_start(*sessions->starts().rbegin());
  }
  for (const v1::FileEnd& file : checkpoint.files()) {
    if (!IsBelowRun(file.path()))
      return absl::DataLossError(absl::StrCat(Path(file.path()), " is not below the run folder"));
    RETURN_IF_ERROR(IsPoliciesPath(file.path()) ? AddPolicies(file) : AddGrowing(file.path(), file.bytes()));
  }
  RETURN_IF_ERROR(AddUnnamedPolicies(checkpoint));
  RETURN_IF_ERROR(AddReplay());
  RETURN_IF_ERROR(AddRest());
  return std::move(cut_);
}

// The newest sound checkpoint; nothing without any. One that newer ones have replaced meanwhile is no error.
absl::StatusOr<std::optional<v1::LearnerCheckpoint>> NewestSound(const std::string& folder) {
  std::vector<absl::Status> damage;
  std::optional<v1::LearnerCheckpoint> newest = CheckpointStore(folder).Newest(&damage);
  if (newest.has_value()) return newest;
  if (!damage.empty()) return damage.back();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  const bool replaced =
      std::any_of(names.begin(), names.end(), [](const std::string& name) { return absl::EndsWith(name, ".old"); });
  if (replaced) return absl::AbortedError("the checkpoint is being replaced");
  return std::nullopt;
}

}  // namespace

std::string ObjectOf(const std::string& path, const v1::ArchivedPart& part) {
  return absl::StrCat("parts/", path, "/", part.offset(), "-", part.sha256().substr(0, 16));
}

absl::StatusOr<std::optional<v1::ArchiveCut>> TakeCut(const std::string& run_dir, const v1::ArchiveCut& former,
                                                      const std::string& spool) {
  absl::Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::error_code error;
    fs::remove_all(spool, error);
    if (attempt > 0) absl::SleepFor(kPause);
    const auto checkpoint = NewestSound(run_dir + "/checkpoints");
    if (checkpoint.ok() && !checkpoint->has_value()) return std::nullopt;
    status = checkpoint.status();
    if (status.ok()) {
      absl::StatusOr<v1::ArchiveCut> cut = Cutter(run_dir, former, spool).Take(**checkpoint);
      if (cut.ok()) return std::optional(*std::move(cut));
      status = cut.status();
    }
    if (!absl::IsAborted(status) && !absl::IsOutOfRange(status) && !absl::IsNotFound(status)) return status;
  }
  return Annotate(status, absl::StrCat(run_dir, ": no cut in ", kAttempts, " attempts"));
}

}  // namespace datacom::archive
// SPDX-License-Identifier: Apache-2.0
