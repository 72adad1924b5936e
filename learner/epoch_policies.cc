#include "learner/epoch_policies.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/files.h"
#include "common/base/status.h"

namespace datacom::learner {

std::string EpochPolicies::Path(uint32_t epoch) const {
  return absl::StrFormat("%s/epoch_%04d.snapshot", folder_, epoch);
}

void EpochPolicies::Keep(uint32_t epoch, std::vector<Snapshot> snapshots) {
  kept_.clear();
  for (Snapshot& snapshot : snapshots) kept_.push_back(std::make_shared<const PublishedSnapshot>(std::move(snapshot)));
  kept_epoch_ = epoch;
  has_kept_ = true;
}

absl::Status EpochPolicies::Write(uint32_t epoch, std::vector<Snapshot> snapshots) {
  RETURN_IF_ERROR(MakeFolders(folder_));
  RETURN_IF_ERROR(WriteSnapshotFile(Path(epoch), snapshots));
  MutexLock lock(&mutex_);
  Keep(epoch, std::move(snapshots));
  return absl::OkStatus();
}

absl::StatusOr<PublishedPtr> EpochPolicies::Get(uint32_t epoch, uint32_t member) {
  MutexLock lock(&mutex_);
  if (!has_kept_ || kept_epoch_ != epoch) {
    ASSIGN_OR_RETURN(std::vector<Snapshot> snapshots, ReadSnapshotFile(Path(epoch)));
    Keep(epoch, std::move(snapshots));
  }
  if (member >= kept_.size()) {
    return absl::NotFoundError(absl::StrCat(Path(epoch), ": no member ", member, ", it holds ", kept_.size()));
  }
  return kept_[member];
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
