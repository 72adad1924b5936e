#include "deploy/tools/maps/epoch_policies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/config/experiment.h"
#include "common/records/checkpoint.h"

namespace datacom::tools {
namespace {

bool EndsEpoch(const RunOfPolicies& run, uint64_t epoch, uint64_t update) {
  const uint64_t steps = epoch * run.steps_per_epoch;
  return update == run.updates.UpdatesAt(steps) ||
         update == run.updates.UpdatesAt(std::min(steps, run.updates.env_steps));
}

// While a longer run continues the last epoch, next_epoch is that epoch.
bool EndedEarly(const v1::LearnerCheckpoint& newest, uint64_t epoch, uint64_t update) {
  return (epoch + 1 == newest.next_epoch() || epoch == newest.next_epoch()) && update == newest.last_epoch_update();
}

}  // namespace

std::optional<v1::LearnerCheckpoint> NewestCheckpoint(const std::string& run_dir) {
  const CheckpointStore store(run_dir + "/checkpoints");
  for (const uint64_t update : store.List()) {
    absl::StatusOr<Checkpoint> checkpoint = store.Load(update);
    if (checkpoint.ok()) return std::move(checkpoint->learner);
  }
  return std::nullopt;
}

RunOfPolicies ReadRunOfPolicies(const std::string& run_dir, const v1::Experiment& resolved) {
  RunOfPolicies run;
  if (const absl::StatusOr<std::string> id = ReadFile(run_dir + "/run_id"); id.ok()) {
    run.run_id = std::string(absl::StripAsciiWhitespace(*id));
  } else if (const auto newest = NewestCheckpoint(run_dir); newest.has_value()) {
    run.run_id = newest->run_id();
  }
  run.task = resolved.task();
  for (const v1::Member& member : resolved.members()) run.seeds.push_back(member.seed());
  run.updates = UpdatesOf(resolved);
  run.steps_per_epoch = resolved.run().steps_per_epoch();
  return run;
}

absl::Status CheckEpoch(const RunOfPolicies& run, uint64_t epoch, const std::vector<Snapshot>& snapshots,
                        const std::function<std::optional<v1::LearnerCheckpoint>()>& newest) {
  if (snapshots.size() != run.seeds.size()) {
    return absl::DataLossError(
        absl::StrCat("holds ", snapshots.size(), " snapshots, the run has ", run.seeds.size(), " members"));
  }
  for (size_t member = 0; member < snapshots.size(); ++member) {
    const Snapshot& snapshot = snapshots[member];
    const std::string name = absl::StrCat("snapshot ", member, ": ");
    const uint64_t update = snapshot.version.update;
    if (!run.run_id.empty() && snapshot.run_id != run.run_id) {
      return absl::DataLossError(
          absl::StrCat(name, "belongs to run \"", snapshot.run_id, "\", not to \"", run.run_id, "\""));
    }
    if (snapshot.member != member || snapshot.task != run.task || snapshot.member_seed != run.seeds[member]) {
      return absl::DataLossError(
          absl::StrCat(name, "of member ", snapshot.member, ", seed ", snapshot.member_seed, ", task ", snapshot.task));
    }
    if (EndsEpoch(run, epoch, update)) continue;
    if (const auto checkpoint = newest(); checkpoint.has_value() && EndedEarly(*checkpoint, epoch, update)) continue;
    return absl::DataLossError(absl::StrCat(name, "of update ", update, ", which does not end epoch ", epoch));
  }
  return absl::OkStatus();
}

}  // namespace datacom::tools
// SPDX-License-Identifier: Apache-2.0
