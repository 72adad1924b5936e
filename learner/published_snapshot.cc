#include "learner/published_snapshot.h"

#include <string>

#include "common/nn/snapshot_proto.h"
#include "common/rpc/channel.h"

namespace datacom::learner {
namespace {

std::vector<v1::SnapshotChunk> Encode(const Snapshot& snapshot) {
  std::string data;
  v1::SnapshotManifest manifest = MakeManifest(snapshot, &data);
  std::vector<v1::SnapshotChunk> chunks;
  for (size_t begin = 0; begin == 0 || begin < data.size(); begin += kSnapshotChunkBytes) {
    chunks.emplace_back();
    chunks.back().set_data(data.substr(begin, kSnapshotChunkBytes));
  }
  *chunks.front().mutable_manifest() = std::move(manifest);
  chunks.back().set_last(true);
  return chunks;
}

}  // namespace

const std::vector<v1::SnapshotChunk>& PublishedSnapshot::chunks() const {
  std::call_once(encode_once_, [this] { chunks_ = Encode(snapshot_); });
  return chunks_;
}

}  // namespace datacom::learner
