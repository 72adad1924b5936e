// The newest snapshot of each member, between the training thread and the streams of subscribers.
//
// Publish stores a pointer and encodes nothing, so the training thread does not wait for subscribers. The newest
// snapshot replaces the one before it: a slow subscriber skips versions. Thread-safe; only WaitForPublication blocks.
#ifndef DATACOM_LEARNER_SNAPSHOT_HUB_H_
#define DATACOM_LEARNER_SNAPSHOT_HUB_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/nn/snapshot.h"

namespace grpc {
class ByteBuffer;
}  // namespace grpc

namespace datacom::learner {

// One member's snapshot and the messages that carry it to subscribers and evaluators. All streams that send it share
// one object and the bytes of its messages: gRPC does not copy them. Thread-safe.
class PublishedSnapshot {
 public:
  explicit PublishedSnapshot(Snapshot snapshot);
  ~PublishedSnapshot();
  uint32_t member() const { return snapshot_.member; }
  const SnapshotVersion& version() const { return snapshot_.version; }
  int64_t bytes() const { return bytes_; }  // of its arrays
  // The whole snapshot as encoded SnapshotChunk messages with at most kSnapshotChunkBytes of data each. The first call
  // encodes it and drops the arrays; other callers wait for that call. The chunks live as long as this object.
  const std::vector<grpc::ByteBuffer>& chunks() const;

 private:
  mutable Snapshot snapshot_;  // without arrays once it is encoded
  const int64_t bytes_;
  mutable std::once_flag encode_once_;
  mutable std::vector<grpc::ByteBuffer> chunks_;
};

using PublishedPtr = std::shared_ptr<const PublishedSnapshot>;

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

// Each epoch's snapshots on disk: policies/epoch_NNNN.snapshot, all members in one file, readable without LibTorch.
// Thread-safe. Keeps the epoch read or written last in memory, so that evaluators of one epoch cost one read.
class EpochPolicies {
 public:
  explicit EpochPolicies(std::string run_dir) : run_dir_(std::move(run_dir)) {}
  std::string Path(uint32_t epoch) const;
  // snapshots: one per member, in member order. Blocks on the disk.
  absl::Status Write(uint32_t epoch, std::vector<Snapshot> snapshots);
  // NOT_FOUND naming the file or the member; DATA_LOSS for a damaged file.
  absl::StatusOr<PublishedPtr> Get(uint32_t epoch, uint32_t member);

 private:
  void Keep(uint32_t epoch, std::vector<Snapshot> snapshots) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const std::string run_dir_;
  Mutex mutex_;
  std::optional<uint32_t> kept_epoch_ ABSL_GUARDED_BY(mutex_);
  std::vector<PublishedPtr> kept_ ABSL_GUARDED_BY(mutex_);  // one per member
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_SNAPSHOT_HUB_H_
// SPDX-License-Identifier: Apache-2.0
