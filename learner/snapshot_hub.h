// The newest snapshot of each member, between the training thread and the streams of subscribers.
//
// Publish stores a pointer and encodes nothing, so the training thread does not wait for subscribers. The newest
// snapshot replaces the one before it: a slow subscriber skips versions. Thread-safe; only WaitForPublication blocks.
#ifndef DATACOM_LEARNER_SNAPSHOT_HUB_H_
#define DATACOM_LEARNER_SNAPSHOT_HUB_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/mutex.h"
#include "common/nn/snapshot.h"
#include "learner/published_snapshot.h"

namespace datacom::learner {

class SnapshotHub {
 public:
  explicit SnapshotHub(uint32_t members) : latest_(members) {}
  void Publish(Snapshot snapshot);
  PublishedPtr Latest(uint32_t member) const;  // null before the first
  // Publications are numbered from 1. Returns the member's newest snapshot if its number is greater than `*seen`, and
  // sets `*seen` to that number; else returns null.
  PublishedPtr NewerThan(uint32_t member, uint64_t* seen) const;
  // The number of the member's newest snapshot, if that has this version; else 0.
  uint64_t NumberOf(uint32_t member, const SnapshotVersion& version) const;
  // Blocks until there are publications after number `*seen`, and sets `*seen` to the newest. False: closed.
  bool WaitForPublication(uint64_t* seen) const;
  // The learner stops: streams end. Nothing is published afterwards.
  void Close();
  bool closed() const;
  int64_t largest() const;  // bytes of the largest snapshot so far
  uint32_t members() const;

 private:
  struct Entry {
    PublishedPtr snapshot;
    uint64_t number = 0;
  };
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<Entry> latest_ ABSL_GUARDED_BY(mutex_);  // [members]
  uint64_t published_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t largest_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_SNAPSHOT_HUB_H_
// SPDX-License-Identifier: Apache-2.0
