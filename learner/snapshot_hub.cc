#include "learner/snapshot_hub.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace datacom::learner {

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

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
