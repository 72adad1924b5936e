// One member's snapshot and the messages that carry it to subscribers and evaluators. All streams that send it share
// one object and the bytes of its messages: gRPC does not copy them. Thread-safe.
#ifndef DATACOM_LEARNER_PUBLISHED_SNAPSHOT_H_
#define DATACOM_LEARNER_PUBLISHED_SNAPSHOT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "common/nn/snapshot.h"
#include "datacom/v1/learner.pb.h"
#include "grpcpp/grpcpp.h"

namespace datacom::learner {

class PublishedSnapshot {
 public:
  explicit PublishedSnapshot(Snapshot snapshot, v1::ArrayEncoding encoding = v1::FLOAT32);
  ~PublishedSnapshot();
  const SnapshotVersion& version() const { return snapshot_.version; }
  // The whole snapshot as encoded SnapshotChunk messages with at most kSnapshotChunkBytes of data each. The first call
  // encodes it and drops the arrays; other callers wait for that call. The chunks live as long as this object.
  const std::vector<grpc::ByteBuffer>& chunks() const;
  // From now on until its end this object's bytes count in `outdated`, because only streams still hold it. Called at
  // most once.
  void CountIn(std::shared_ptr<std::atomic<int64_t>> outdated) const;

 private:
  mutable Snapshot snapshot_;  // without arrays once it is encoded
  const v1::ArrayEncoding encoding_;
  int64_t bytes_ = 0;  // of the arrays
  mutable std::once_flag encode_once_;
  mutable std::vector<grpc::ByteBuffer> chunks_;
  mutable std::shared_ptr<std::atomic<int64_t>> outdated_;
};

using PublishedPtr = std::shared_ptr<const PublishedSnapshot>;

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_PUBLISHED_SNAPSHOT_H_
