#include "learner/snapshot_hub.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/nn/snapshot_proto.h"
#include "common/records/checkpoint.h"
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
  size_t begin = 0;
  for (; begin + kSnapshotChunkBytes < data.size(); begin += kSnapshotChunkBytes) {
    chunk.set_data(data.data() + begin, kSnapshotChunkBytes);
    chunks.push_back(Encode(chunk));
    chunk.clear_manifest();  // only the first chunk has it
  }
  data.erase(0, begin);
  chunk.set_data(std::move(data));  // most snapshots fit into one chunk, which needs no copy of them
  chunk.set_last(true);
  chunks.push_back(Encode(chunk));
  return chunks;
}

}  // namespace

PublishedSnapshot::PublishedSnapshot(Snapshot snapshot)
    : snapshot_(std::move(snapshot)), bytes_(static_cast<int64_t>(snapshot_.data_bytes())) {}

PublishedSnapshot::~PublishedSnapshot() = default;

const std::vector<grpc::ByteBuffer>& PublishedSnapshot::chunks() const {
  std::call_once(encode_once_, [this] {
    chunks_ = Encode(snapshot_);
    snapshot_.arrays.clear();
    snapshot_.arrays.shrink_to_fit();
  });
  return chunks_;
}

void SnapshotHub::Publish(Snapshot snapshot) {
  const uint32_t member = snapshot.member;
  PublishedPtr published = std::make_shared<const PublishedSnapshot>(std::move(snapshot));
  MutexLock lock(&mutex_);
  largest_ = std::max(largest_, published->bytes());
  std::swap(latest_[member].snapshot, published);  // the replaced one is freed after the lock is released
  latest_[member].number = ++published_;
  changed_.NotifyAll();
}

PublishedPtr SnapshotHub::Latest(uint32_t member) const {
  MutexLock lock(&mutex_);
  return latest_[member].snapshot;
}

PublishedPtr SnapshotHub::NewerThan(uint32_t member, uint64_t* seen) const {
  MutexLock lock(&mutex_);
  const Entry& latest = latest_[member];
  if (latest.number <= *seen) return nullptr;
  *seen = latest.number;
  return latest.snapshot;
}

uint64_t SnapshotHub::NumberOf(uint32_t member, const SnapshotVersion& version) const {
  MutexLock lock(&mutex_);
  const Entry& latest = latest_[member];
  return latest.snapshot != nullptr && latest.snapshot->version() == version ? latest.number : 0;
}

int64_t SnapshotHub::largest() const {
  MutexLock lock(&mutex_);
  return largest_;
}

bool SnapshotHub::WaitForPublication(uint64_t* seen) const {
  MutexLock lock(&mutex_);
  while (!closed_ && published_ == *seen) changed_.Wait(&mutex_);
  *seen = published_;
  return !closed_;
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

std::string EpochPolicies::Path(uint32_t epoch) const { return absl::StrCat(run_dir_, "/", PoliciesPath(epoch)); }

void EpochPolicies::Keep(uint32_t epoch, std::vector<Snapshot> snapshots) {
  kept_.clear();
  for (Snapshot& snapshot : snapshots) kept_.push_back(std::make_shared<const PublishedSnapshot>(std::move(snapshot)));
  kept_epoch_ = epoch;
}

absl::Status EpochPolicies::Write(uint32_t epoch, std::vector<Snapshot> snapshots) {
  RETURN_IF_ERROR(MakeFolder(run_dir_ + "/policies"));
  RETURN_IF_ERROR(WriteSnapshotFile(Path(epoch), snapshots));
  MutexLock lock(&mutex_);
  Keep(epoch, std::move(snapshots));
  return absl::OkStatus();
}

absl::StatusOr<PublishedPtr> EpochPolicies::Get(uint32_t epoch, uint32_t member) {
  MutexLock lock(&mutex_);
  if (kept_epoch_ != epoch) {
    ASSIGN_OR_RETURN(std::vector<Snapshot> snapshots, ReadSnapshotFile(Path(epoch)));
    Keep(epoch, std::move(snapshots));
  }
  if (member >= kept_.size()) {
    return absl::NotFoundError(absl::StrCat(Path(epoch), ": no member ", member, ", it holds ", kept_.size()));
  }
  return kept_[member];
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
