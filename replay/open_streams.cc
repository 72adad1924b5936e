#include "replay/open_streams.h"

namespace datacom::replay {

void OpenStreams::Add(const std::shared_ptr<StoreListener>& listener) {
  MutexLock lock(&mutex_);
  listeners_[listener.get()] = listener;
}

void OpenStreams::Remove(StoreListener* listener) {
  std::shared_ptr<StoreListener> last;  // dies after the lock is released
  MutexLock lock(&mutex_);
  const auto found = listeners_.find(listener);
  if (found == listeners_.end()) return;
  last = found->second;
  listeners_.erase(found);
}

std::vector<std::shared_ptr<StoreListener>> OpenStreams::Listeners() const {
  MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<StoreListener>> listeners;
  listeners.reserve(listeners_.size());
  for (const auto& [key, listener] : listeners_) listeners.push_back(listener);
  return listeners;
}

void OpenStreams::NotifyAll() {
  for (const auto& listener : Listeners()) listener->OnChange();
}

void OpenStreams::TickAll() {
  for (const auto& listener : Listeners()) listener->OnTick();
}

absl::Status OpenStreams::CheckOpen() const {
  if (draining()) return absl::UnavailableError("the replay is stopping; try again when it is back");
  return store_->health();
}

bool OpenStreams::draining() const {
  MutexLock lock(&mutex_);
  return draining_;
}

void OpenStreams::Drain() {
  {
    MutexLock lock(&mutex_);
    draining_ = true;
  }
  (void)store_->Commit();  // without it the actors send the rows again
  for (const auto& listener : Listeners()) listener->Close(CheckOpen());
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
