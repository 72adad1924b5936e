#include "learner/published_snapshot.h"

#include <cstdlib>
#include <string>

#include "common/nn/snapshot_proto.h"
#include "common/rpc/channel.h"
#include "datacom/v1/learner.grpc.pb.h"

namespace datacom::learner {
namespace {

grpc::ByteBuffer Encode(const v1::SnapshotChunk& chunk) {
  grpc::ByteBuffer buffer;
  bool own = false;
  if (!grpc::SerializationTraits<v1::SnapshotChunk>::Serialize(chunk, &buffer, &own).ok()) std::abort();  // never
  return buffer;
}

std::vector<grpc::ByteBuffer> Encode(const Snapshot& snapshot) {
  std::string data;
  v1::SnapshotChunk chunk;
  *chunk.mutable_manifest() = MakeManifest(snapshot, &data);
  std::vector<grpc::ByteBuffer> chunks;
  for (size_t begin = 0; begin == 0 || begin < data.size(); begin += kSnapshotChunkBytes) {
    chunk.set_data(data.substr(begin, kSnapshotChunkBytes));
    chunk.set_last(begin + kSnapshotChunkBytes >= data.size());
    chunks.push_back(Encode(chunk));
    chunk.clear_manifest();  // only the first chunk has it
  }
  return chunks;
}

}  // namespace

PublishedSnapshot::PublishedSnapshot(Snapshot snapshot) : snapshot_(std::move(snapshot)) {
  for (const NamedArray& array : snapshot_.arrays) bytes_ += static_cast<int64_t>(array.values.size() * sizeof(float));
}

PublishedSnapshot::~PublishedSnapshot() = default;

const std::vector<grpc::ByteBuffer>& PublishedSnapshot::chunks() const {
  std::call_once(encode_once_, [this] {
    chunks_ = Encode(snapshot_);
    snapshot_.arrays.clear();
    snapshot_.arrays.shrink_to_fit();
  });
  return chunks_;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
