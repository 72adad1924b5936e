#include "learner/snapshot_hub.h"

#include <utility>

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

bool PublishedSnapshot::ForEachChunk(const std::function<bool(const v1::SnapshotChunk&)>& send) const {
  std::call_once(encode_once_, [this] { chunks_ = Encode(snapshot_); });
  for (const v1::SnapshotChunk& chunk : chunks_) {
    if (!send(chunk)) return false;
  }
  return true;
}

void SnapshotHub::Publish(Snapshot snapshot) {
  const uint32_t member = snapshot.member;
  PublishedPtr published = std::make_shared<const PublishedSnapshot>(std::move(snapshot));
  MutexLock lock(&mutex_);
  std::swap(latest_[member], published);
  changed_.NotifyAll();
}

PublishedPtr SnapshotHub::Latest(uint32_t member) const {
  MutexLock lock(&mutex_);
  return latest_[member];
}

void SnapshotHub::WaitForNewer(uint32_t first, const std::vector<PublishedPtr>& seen,
                               std::chrono::milliseconds timeout) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(&mutex_);
  while (!closed_) {
    for (size_t i = 0; i < seen.size(); ++i) {
      if (latest_[first + i] != seen[i]) return;
    }
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds(0)) return;
    changed_.WaitFor(&mutex_, left);
  }
}

void SnapshotHub::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  changed_.NotifyAll();
}

bool SnapshotHub::closed() const {
  MutexLock lock(&mutex_);
  return closed_;
}

uint32_t SnapshotHub::members() const {
  MutexLock lock(&mutex_);
  return static_cast<uint32_t>(latest_.size());
}

}  // namespace datacom::learner
