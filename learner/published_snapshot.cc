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

std::vector<grpc::ByteBuffer> Encode(const Snapshot& snapshot, v1::ArrayEncoding encoding) {
  std::string data;
  v1::SnapshotManifest manifest = MakeManifest(snapshot, &data, encoding);
  std::vector<grpc::ByteBuffer> chunks;
  for (size_t begin = 0; begin == 0 || begin < data.size(); begin += kSnapshotChunkBytes) {
    v1::SnapshotChunk chunk;
    chunk.set_data(data.substr(begin, kSnapshotChunkBytes));
    if (begin == 0) *chunk.mutable_manifest() = std::move(manifest);
    chunk.set_last(begin + kSnapshotChunkBytes >= data.size());
    chunks.push_back(Encode(chunk));
  }
  return chunks;
}

}  // namespace

PublishedSnapshot::PublishedSnapshot(Snapshot snapshot, v1::ArrayEncoding encoding)
    : snapshot_(std::move(snapshot)), encoding_(encoding) {
  for (const NamedArray& array : snapshot_.arrays) bytes_ += static_cast<int64_t>(array.values.size() * sizeof(float));
}

PublishedSnapshot::~PublishedSnapshot() {
  if (outdated_ != nullptr) *outdated_ -= bytes_;
}

void PublishedSnapshot::CountIn(std::shared_ptr<std::atomic<int64_t>> outdated) const {
  outdated_ = std::move(outdated);
  *outdated_ += bytes_;
}

const std::vector<grpc::ByteBuffer>& PublishedSnapshot::chunks() const {
  std::call_once(encode_once_, [this] {
    chunks_ = Encode(snapshot_, encoding_);
    snapshot_.arrays.clear();
    snapshot_.arrays.shrink_to_fit();
  });
  return chunks_;
}

}  // namespace datacom::learner
