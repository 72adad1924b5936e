#include "replay/streams.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/channel.h"
#include "replay/waits.h"
#include "spdlog/spdlog.h"

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

namespace {

// Bounds the memory when every chunk is rejected and the sender reads no replies; the oldest rejections are enough.
constexpr int kMaxRejections = 64;

// A sender that reads such a rejection sends the member's rows again.
bool HasRejection(const v1::InsertReply& reply, uint32_t member) {
  return std::any_of(reply.rejections().begin(), reply.rejections().end(),
                     [member](const v1::Rejection& rejection) { return rejection.member() == member; });
}

}  // namespace

absl::Status InsertStream::Open(const v1::InsertOpen& open) {
  Store* store = streams_->store();
  RETURN_IF_ERROR(CheckHello(open.hello(), store->options().run_id, store->schema().fingerprint()));
  RETURN_IF_ERROR(streams_->CheckOpen());
  ASSIGN_OR_RETURN(const uint64_t stream, store->Connect(open.session(), open.incarnation()));
  MutexLock lock(&mutex_);
  session_ = open.session();
  stream_ = stream;
  return absl::OkStatus();
}

absl::StatusOr<InsertStream::Heard> InsertStream::Handle(const v1::InsertRequest& request) {
  uint32_t session = 0;
  uint64_t stream = 0;
  {
    MutexLock lock(&mutex_);
    session = session_;
    stream = stream_;
  }
  if (request.has_open() != (stream == 0)) {
    return absl::InvalidArgumentError("an insert stream begins with one open, then chunks and releases follow");
  }
  if (request.has_open()) {
    RETURN_IF_ERROR(Open(request.open()));
    return Heard::kAll;  // it replaces an older stream of its session
  }
  RETURN_IF_ERROR(streams_->CheckOpen());
  const Heard after = streams_->store()->options().sync ? Heard::kPeer : Heard::kAll;
  if (request.has_release()) {
    RETURN_IF_ERROR(streams_->store()->Release(session, stream, request.release()));
    return after;
  }
  const Clock::Time start = Clock::Real().Now();
  v1::InsertReply reply;
  RETURN_IF_ERROR(streams_->store()->Insert(session, stream, request.chunk(), &reply));
  streams_->metrics()->ObserveInsert(Seconds(Clock::Real().Now() - start));
  const Heard heard = request.chunk().more() ? Heard::kNobody : after;
  if (reply.rejections().empty()) return heard;
  MutexLock lock(&mutex_);
  const v1::Rejection& rejection = reply.rejections(0);
  const bool retried = rejection.code() != static_cast<int32_t>(absl::StatusCode::kInvalidArgument);
  if (rejections_.rejections_size() < kMaxRejections || (retried && !HasRejection(rejections_, rejection.member())))
    rejections_.MergeFrom(reply);
  return heard;
}

bool InsertStream::Next(bool tick) {
  bool any = rejections_.rejections_size() > 0;
  reply_.Clear();
  reply_.Swap(&rejections_);
  if (stream_ == 0) return any;
  const auto changed = streams_->store()->Progress(session_, stream_, &sent_, &reply_);
  if (!changed.ok()) {
    End(changed.status());
    return any;
  }
  return any || *changed;
}

void InsertStream::Leave() {
  if (stream_ != 0) streams_->store()->Disconnect(session_, stream_);
}

namespace {

constexpr size_t kMaxQueuedDraws = 64;

}  // namespace

absl::StatusOr<ReplayDrawStream::Heard> ReplayDrawStream::Handle(const v1::DrawRequest& request) {
  MutexLock lock(&mutex_);
  Store* store = streams_->store();
  RETURN_IF_ERROR(streams_->CheckOpen());
  if (!greeted_) {
    RETURN_IF_ERROR(CheckHello(request.hello(), store->options().run_id, store->schema().fingerprint()));
    incarnation_ = request.incarnation();
  }
  const bool news = !greeted_ || request.completed_update() != completed_;
  RETURN_IF_ERROR(store->Announce(request.completed_update(), incarnation_));  // says more of an older replay
  completed_ = request.completed_update();
  if (!greeted_) {
    RETURN_IF_ERROR(store->CheckStart("the learner's state", request.replay_start()));
    store->SetLearnerConnected(true);
    greeted_ = true;
  }
  const Heard heard = news && !store->options().sync ? Heard::kAll : Heard::kPeer;
  if (request.draw_update() == 0) return heard;
  if (queued_.size() >= kMaxQueuedDraws) {
    return absl::ResourceExhaustedError(
        absl::StrCat("draw of update ", request.draw_update(), ": ", kMaxQueuedDraws, " draws are already waiting"));
  }
  queued_.push_back(request.draw_update());
  return heard;
}

bool ReplayDrawStream::Next(bool tick) {
  if (queued_.empty() || closing_) return false;
  Store* store = streams_->store();
  const Clock& clock = *store->options().clock;
  reply_.Clear();
  const Clock::Time start = Clock::Real().Now();
  const absl::Status drawn = store->Draw(queued_.front(), &reply_, &place_);
  reply_.set_replay_start(store->start());
  if (drawn.ok() && reply_.ByteSizeLong() > kMaxMessageBytes) {  // sending it would break the stream at every retry
    End(absl::FailedPreconditionError(absl::StrCat("draw of update ", queued_.front(), ": ", reply_.ByteSizeLong(),
                                                   " bytes with the finished episodes; a message holds at most ",
                                                   kMaxMessageBytes)));
    return false;
  }
  if (drawn.ok()) {
    draw_seconds_ += Seconds(Clock::Real().Now() - start);
    if (!reply_.more()) {
      streams_->metrics()->ObserveDraw(std::exchange(draw_seconds_, 0));
      queued_.pop_front();
      place_ = DrawPlace{};
    }
    waiting_ = false;
    sent_wait_.clear();
    return true;
  }
  if (const absl::Status failed = absl::IsUnavailable(drawn) ? store->health() : drawn; !failed.ok()) {
    End(failed);
    return false;
  }
  if (!waiting_) waiting_since_ = clock.Now();
  waiting_ = true;
  if (!tick || Seconds(clock.Now() - waiting_since_) < kExpectedWaitSeconds) return false;
  const std::string missing = store->DescribeMissingRows(queued_.front());
  if (missing.empty()) return false;  // the rows have come in the meantime: the next call draws
  const std::string wait = absl::StrCat("learner waits for rows: ", missing);
  if (sent_wait_.empty()) spdlog::info("draw waits update={} for={:?}", queued_.front(), wait);
  if (wait == sent_wait_) return false;
  reply_.Clear();
  reply_.set_replay_start(store->start());
  reply_.set_waiting_for(sent_wait_ = wait);
  return true;
}

void ReplayDrawStream::Leave() {
  if (greeted_) streams_->store()->SetLearnerConnected(false);
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
