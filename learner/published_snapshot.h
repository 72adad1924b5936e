// One member's snapshot and the messages that carry it to subscribers and evaluators. All streams that send it share
// one object and the bytes of its messages: gRPC does not copy them. Thread-safe.
#ifndef DATACOM_LEARNER_PUBLISHED_SNAPSHOT_H_
#define DATACOM_LEARNER_PUBLISHED_SNAPSHOT_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "common/nn/snapshot.h"

namespace grpc {
class ByteBuffer;
}  // namespace grpc

namespace datacom::learner {

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
  int64_t bytes_ = 0;
  mutable std::once_flag encode_once_;
  mutable std::vector<grpc::ByteBuffer> chunks_;
};

using PublishedPtr = std::shared_ptr<const PublishedSnapshot>;

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_PUBLISHED_SNAPSHOT_H_
// SPDX-License-Identifier: Apache-2.0
