// One member's snapshot and the messages that carry it to subscribers and evaluators. All streams that send it share
// one object. Thread-safe.
#ifndef DATACOM_LEARNER_PUBLISHED_SNAPSHOT_H_
#define DATACOM_LEARNER_PUBLISHED_SNAPSHOT_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "common/nn/snapshot.h"
#include "datacom/v1/learner.pb.h"

namespace datacom::learner {

class PublishedSnapshot {
 public:
  explicit PublishedSnapshot(Snapshot snapshot) : snapshot_(std::move(snapshot)) {}
  // The whole snapshot in chunks of at most kSnapshotChunkBytes. The first call encodes it; other callers wait for that
  // call. The chunks live as long as this object.
  const std::vector<v1::SnapshotChunk>& chunks() const;

 private:
  const Snapshot snapshot_;
  mutable std::once_flag encode_once_;
  mutable std::vector<v1::SnapshotChunk> chunks_;
};

using PublishedPtr = std::shared_ptr<const PublishedSnapshot>;

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_PUBLISHED_SNAPSHOT_H_
