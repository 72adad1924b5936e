// The newest snapshot of each member, between the training thread and the streams of subscribers.
//
// Publish stores a pointer and encodes nothing, so the training thread does not wait for subscribers. The newest
// snapshot replaces the one before it: a slow subscriber skips versions. Thread-safe; only WaitForPublication blocks.
#ifndef DATACOM_LEARNER_SNAPSHOT_HUB_H_
#define DATACOM_LEARNER_SNAPSHOT_HUB_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/mutex.h"
#include "common/nn/snapshot.h"
#include "learner/published_snapshot.h"

namespace datacom::learner {

class SnapshotHub {
 public:
  SnapshotHub(uint32_t members, v1::ArrayEncoding encoding) : encoding_(encoding), latest_(members) {}
  void Publish(Snapshot snapshot);
  PublishedPtr Latest(uint32_t member) const;  // null before the first
  // Publications are numbered from 1. Returns the member's newest snapshot if its number is greater than `*seen`, and
  // sets `*seen` to that number; else returns null.
  PublishedPtr NewerThan(uint32_t member, uint64_t* seen) const;
  // Of the snapshots that newer ones have replaced, those that streams still send: bytes of their arrays.
  int64_t outdated_bytes() const { return *outdated_; }
  // The number of the member's newest snapshot, if that has this version; else 0.
  uint64_t NumberOf(uint32_t member, const SnapshotVersion& version) const;
  // Blocks until there are publications after number `*seen`, and sets `*seen` to the newest. False: closed.
  bool WaitForPublication(uint64_t* seen) const;
  // The learner stops: streams end. Nothing is published afterwards.
  void Close();
  bool closed() const;
  uint32_t members() const;

 private:
  struct Entry {
    PublishedPtr snapshot;
    uint64_t number = 0;
  };
  const std::shared_ptr<std::atomic<int64_t>> outdated_ = std::make_shared<std::atomic<int64_t>>(0);
  const v1::ArrayEncoding encoding_;  // of the snapshots in messages
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<Entry> latest_ ABSL_GUARDED_BY(mutex_);  // [members]
  uint64_t published_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_SNAPSHOT_HUB_H_
