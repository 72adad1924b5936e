#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "common/nn/snapshot.h"
#include "common/records/checkpoint.h"
#include "common/records/updates_made.h"
#include "deploy/tools/policies/run_policies.h"
#include "deploy/tools/verify/check_rings.h"
#include "deploy/tools/verify/run.h"

namespace datacom::verify {
namespace {

namespace fs = std::filesystem;

constexpr char kFolder[] = "checkpoints";
constexpr size_t kKept = 2;  // checkpoints
constexpr int kTries = 100;
constexpr std::chrono::milliseconds kPause{10};  // a learner renames and removes checkpoints within milliseconds

std::string FileOf(uint64_t update) { return absl::StrCat(kFolder, "/", update); }

// NOT_FOUND: the running learner has removed it.
absl::StatusOr<Checkpoint> Load(const VerifiedRun& run, const CheckpointStore& store, uint64_t update) {
  for (int i = 0;; ++i) {
    absl::StatusOr<Checkpoint> checkpoint = store.Load(update);
    if (checkpoint.ok() || !run.running) return checkpoint;
    const std::vector<uint64_t> now = store.List();
    const auto end = now.begin() + static_cast<int64_t>(std::min(kKept, now.size()));
    if (std::find(now.begin(), end, update) == end && now.size() >= kKept) {
      return absl::NotFoundError(absl::StrCat(update, " was removed"));
    }
    if (!absl::IsNotFound(checkpoint.status()) || i == kTries)
      return absl::DataLossError(checkpoint.status().message());
    std::this_thread::sleep_for(kPause);
  }
}

void CheckOne(VerifiedRun* run, uint64_t update, const v1::LearnerCheckpoint& learner,
              const std::vector<MemberRings>& rings) {
  const std::string file = FileOf(update);
  if (run->settings.run_id.empty()) run->settings.run_id = learner.run_id();
  CheckCheckpoint(run->dir, learner, run->settings.run_id, FixedSettings(run->experiment), run->updates(),
                  [run](const std::string& damaged, const absl::Status& problem) {
                    run->report->Damage(damaged, problem.message());
                  });
  const uint64_t seen = update == 0 ? 0 : run->updates().RowsSeen(update);
  for (uint32_t member = 0; member < rings.size(); ++member) {
    if (rings[member].rows == nullptr) continue;  // reported
    const absl::StatusOr<uint64_t> rows = rings[member].rows->StoredCursor();
    if (!rows.ok() || *rows >= seen) continue;
    run->report->Damage(
        absl::StrCat("replay/member_", member, ".rows"),
        absl::StrCat("row ", *rows, ": missing; the ring is older than ", file, ", which has seen ", seen, " rows"));
  }
}

// Folders that are no checkpoints now. Returns whether the learner would use one of them.
bool FindOthers(VerifiedRun* run) {
  bool usable = false;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run->Path(kFolder), error)) {
    const std::string name = entry.path().filename().string();
    if (absl::EndsWith(name, ".damaged")) {
      run->report->Note(absl::StrCat(kFolder, "/", name, ": was moved aside because it is damaged"));
    } else if (absl::EndsWith(name, ".old") && !run->running) {
      usable = true;
      run->report->Note(absl::StrCat(kFolder, "/", name, ": left when a checkpoint was replaced; a resume uses it"));
    }
  }
  return usable;
}

void CheckIncarnation(VerifiedRun* run) {
  const std::string file = absl::StrCat(kFolder, "/incarnation");
  const absl::Status status = LastIncarnation(run->Path(file)).status();
  if (!status.ok()) run->report->Damage(file, status.message());
}

// It decides nothing, and a learner begins it again.
void CheckUpdatesMade(VerifiedRun* run) {
  const absl::Status status = ReadUpdatesMade(UpdatesMadeFile(run->dir)).status();
  if (!status.ok() && !absl::IsNotFound(status)) run->report->Note(std::string(status.message()));
}

void CheckSnapshots(VerifiedRun* run, uint64_t epoch, const std::string& file) {
  const absl::StatusOr<std::vector<Snapshot>> snapshots = ReadSnapshotFile(run->Path(file));
  if (!snapshots.ok()) return run->report->Damage(file, snapshots.status().message());
  if (run->settings.run_id.empty() && !snapshots->empty()) run->settings.run_id = snapshots->front().run_id;
  const absl::Status status =
      tools::CheckEpoch(run->experiment, run->settings.run_id, epoch, *snapshots, [run] { return run->checkpoint; });
  if (!status.ok()) run->report->Damage(file, status.message());
}

// Whether deploy/kubernetes/fetch has left the checkpoints behind.
bool NotFetched(const VerifiedRun& run) {
  const absl::StatusOr<std::string> names = ReadFile(run.Path("not_fetched"));
  return names.ok() && absl::StripAsciiWhitespace(*names) == kFolder;
}

}  // namespace

void VerifyCheckpoints(VerifiedRun* run, const std::vector<MemberRings>& rings, bool learned) {
  const CheckpointStore store(run->Path(kFolder));
  std::vector<uint64_t> sound;
  std::vector<std::pair<uint64_t, absl::Status>> damaged;
  const std::vector<uint64_t> updates = store.List();
  for (const uint64_t update : updates) {
    const absl::StatusOr<Checkpoint> checkpoint = Load(*run, store, update);
    if (run->running && absl::IsNotFound(checkpoint.status())) continue;
    if (checkpoint.ok()) {
      sound.push_back(update);
      CheckOne(run, update, checkpoint->learner, rings);
    } else {
      damaged.emplace_back(update, checkpoint.status());
    }
  }
  for (const auto& [update, status] : damaged) {
    // A learner passes over a damaged checkpoint only; all others it refuses.
    const bool passed_over = !absl::IsFailedPrecondition(status) && !CannotBeReadForNow(status);
    const bool movable = passed_over && !sound.empty() && update > sound.back();
    run->report->Damage(FileOf(update), status.message(), movable ? MoveCheckpointAside(*run, update) : nullptr);
  }
  const bool others = FindOthers(run);
  CheckIncarnation(run);
  CheckUpdatesMade(run);
  if (updates.empty() && !others && NotFetched(*run)) return run->report->Part("checkpoints", "not fetched");
  if (updates.empty() && !others && (learned || run->RowsLearned() > 0))
    run->report->Damage(kFolder, "there is none, although the records show that the run has begun to learn");
  std::string names;
  for (const uint64_t update : sound) absl::StrAppend(&names, names.empty() ? ", update " : " and ", update);
  run->report->Part("checkpoints", updates.empty() ? "none yet" : absl::StrCat(sound.size(), " sound", names));
}

void VerifyPolicies(VerifiedRun* run) {
  const std::map<uint32_t, fs::path> files = tools::PolicyFiles(run->dir);
  uint64_t next = 0, checked = 0;
  const auto skip_to = [&](uint64_t epoch) {
    if (next >= epoch) return;
    const std::string others = epoch - next == 1 ? "" : absl::StrCat(", and all up to epoch ", epoch - 1);
    run->report->Damage(PoliciesPath(static_cast<uint32_t>(next)), "missing" + others);
  };
  for (const auto& [epoch, path] : files) {
    run->progress->Tell("policies", checked++, files.size());
    skip_to(epoch);
    CheckSnapshots(run, epoch, absl::StrCat("policies/", path.filename().string()));
    next = uint64_t{epoch} + 1;
  }
  skip_to(run->checkpoint.has_value() ? run->checkpoint->next_epoch() : 0);
  run->report->Part("policies", absl::StrCat("snapshots of ", Count(files.size(), "epoch")));
}

}  // namespace datacom::verify
// SPDX-License-Identifier: Apache-2.0
