#include "learner/prefetch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace datacom::learner {
namespace {

constexpr std::chrono::milliseconds kPoll{1000};  // how often the reason of a wait is renewed

}  // namespace

Prefetch::Prefetch(std::unique_ptr<DrawStream> stream, BatchDecoder decoder, const AlgorithmConfig& config,
                   const Options& options)
    : options_(options),
      stream_(std::move(stream)),
      decoder_(std::move(decoder)),
      completed_(options.first_update - 1),
      announced_(completed_) {
  for (int i = 0; i < std::min(options_.ahead, kDecoded) + 1; ++i) {  // one more: the one that is being trained on
    slots_.push_back(std::make_unique<PreparedUpdate>());
    slots_.back()->batch.Resize(config);
    free_.push_back(slots_.back().get());
  }
  stream_->Announce(announced_);  // before the first request: the updates that this learner has done
  thread_ = std::thread([this] { Run(); });
}

Prefetch::~Prefetch() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.NotifyAll();
  }
  stream_->Cancel();
  thread_.join();
}

absl::StatusOr<PreparedUpdate*> Prefetch::Next(std::chrono::milliseconds timeout) {
  MutexLock lock(&mutex_);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (ready_.empty()) {
    if (!status_.ok()) return status_;
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds(0)) {
      SendAnnouncement();  // the rows that the draw lacks may need it
      return absl::DeadlineExceededError(waiting_for_);
    }
    changed_.WaitFor(&mutex_, left);
  }
  PreparedUpdate* prepared = ready_.front();
  ready_.pop_front();
  return prepared;
}

void Prefetch::Release(PreparedUpdate* prepared) {
  MutexLock lock(&mutex_);
  free_.push_back(prepared);
  changed_.NotifyAll();
}

void Prefetch::Announce(uint64_t completed_update) {
  completed_ = completed_update;
  if (completed_ >= announced_ + options_.announced_together || completed_ >= options_.last_update) SendAnnouncement();
}

void Prefetch::SendAnnouncement() {
  if (announced_ == completed_) return;
  announced_ = completed_;
  stream_->Announce(announced_);
}

std::string Prefetch::waiting_for() const {
  MutexLock lock(&mutex_);
  return waiting_for_;
}

bool Prefetch::decoding() const {
  MutexLock lock(&mutex_);
  return decoding_;
}

void Prefetch::Run() {
  uint64_t requested = options_.first_update - 1;
  uint64_t expected = options_.first_update;
  while (expected <= options_.last_update) {
    const uint64_t ahead = std::min<uint64_t>(options_.last_update, expected + options_.ahead - 1);
    while (requested < ahead) stream_->Request(++requested);
    absl::StatusOr<v1::DrawReply> reply = stream_->Next(kPoll);
    const bool waiting = absl::IsDeadlineExceeded(reply.status());
    const absl::Status status = reply.ok() ? DecodeNext(*std::move(reply), expected) : reply.status();
    MutexLock lock(&mutex_);
    if (stop_) return;
    waiting_for_ = waiting ? std::string(status.message()) : "";
    if (status.ok()) {
      ++expected;
    } else if (!waiting) {
      status_ = status;
      changed_.NotifyAll();
      return;
    }
  }
}

absl::Status Prefetch::DecodeNext(v1::DrawReply reply, uint64_t expected) {
  if (reply.update() != expected) {
    return absl::DataLossError(absl::StrCat("draw of update ", reply.update(), " arrived instead of ", expected));
  }
  PreparedUpdate* slot = nullptr;
  {
    MutexLock lock(&mutex_);
    while (free_.empty() && !stop_) changed_.Wait(&mutex_);
    if (stop_) return absl::CancelledError("prefetch stopped");
    slot = free_.back();
    free_.pop_back();
    decoding_ = true;
  }
  const absl::Status status = decoder_.Decode(&reply, slot);
  MutexLock lock(&mutex_);
  decoding_ = false;
  if (status.ok()) {
    ready_.push_back(slot);
  } else {
    free_.push_back(slot);
  }
  changed_.NotifyAll();
  return status;
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
