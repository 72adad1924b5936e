// The newest snapshot of each member, between the training thread and the service's subscribers.
//
// Publish only stores a pointer; the first subscriber that needs a snapshot's encoding computes it, once, off the
// training thread, and all subscribers share it. Latest value wins: a slow subscriber skips versions. Thread-safe.
#ifndef DATACOM_LEARNER_SNAPSHOT_HUB_H_
#define DATACOM_LEARNER_SNAPSHOT_HUB_H_

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/mutex.h"
#include "common/nn/snapshot.h"
#include "datacom/v1/learner.pb.h"

namespace datacom::learner {

// A snapshot and, once somebody asked, its wire form. Immutable; shared.
class PublishedSnapshot {
 public:
  explicit PublishedSnapshot(Snapshot snapshot) : snapshot_(std::move(snapshot)) {}
  const Snapshot& snapshot() const { return snapshot_; }
  // Calls `send` for each chunk in order until it answers false. False when it did.
  bool ForEachChunk(const std::function<bool(const v1::SnapshotChunk&)>& send) const;

 private:
  const Snapshot snapshot_;
  mutable std::once_flag encode_once_;
  mutable std::vector<v1::SnapshotChunk> chunks_;
};

using PublishedPtr = std::shared_ptr<const PublishedSnapshot>;

class SnapshotHub {
 public:
  explicit SnapshotHub(uint32_t members) : latest_(members) {}
  void Publish(Snapshot snapshot);
  PublishedPtr Latest(uint32_t member) const;  // null before the first
  // Blocks until a member of [first, first + seen.size()) has another snapshot than `seen`, the timeout or Close.
  void WaitForNewer(uint32_t first, const std::vector<PublishedPtr>& seen, std::chrono::milliseconds timeout) const;
  void Close();
  bool closed() const;
  uint32_t members() const;

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<PublishedPtr> latest_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_SNAPSHOT_HUB_H_
