// Each epoch's snapshots on disk: policies/epoch_NNNN.snapshot, all members in one file, readable without LibTorch.
// Thread-safe. Keeps the epoch read or written last in memory, so that evaluators of one epoch cost one read.
#ifndef DATACOM_LEARNER_EPOCH_POLICIES_H_
#define DATACOM_LEARNER_EPOCH_POLICIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/nn/snapshot.h"
#include "learner/snapshot_hub.h"

namespace datacom::learner {

class EpochPolicies {
 public:
  explicit EpochPolicies(std::string folder) : folder_(std::move(folder)) {}
  std::string Path(uint32_t epoch) const;
  // snapshots: one per member, in member order. Blocks on the disk.
  absl::Status Write(uint32_t epoch, std::vector<Snapshot> snapshots);
  // NOT_FOUND naming the file or the member; DATA_LOSS for a damaged file.
  absl::StatusOr<PublishedPtr> Get(uint32_t epoch, uint32_t member);

 private:
  void Keep(uint32_t epoch, std::vector<Snapshot> snapshots) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const std::string folder_;
  Mutex mutex_;
  bool has_kept_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t kept_epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<PublishedPtr> kept_ ABSL_GUARDED_BY(mutex_);  // one per member
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_EPOCH_POLICIES_H_
// SPDX-License-Identifier: Apache-2.0
