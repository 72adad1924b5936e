#include "replay/draw_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/channel.h"
#include "replay/waits.h"
#include "spdlog/spdlog.h"

namespace datacom::replay {
namespace {

constexpr size_t kMaxQueuedDraws = 64;

}  // namespace

absl::StatusOr<bool> ReplayDrawStream::Handle(const v1::DrawRequest& request) {
  MutexLock lock(&mutex_);
  Store* store = streams_->store();
  RETURN_IF_ERROR(streams_->CheckOpen());
  if (!greeted_) {
    RETURN_IF_ERROR(CheckHello(request.hello(), store->options().run_id, store->schema().fingerprint()));
    incarnation_ = request.incarnation();
  }
  RETURN_IF_ERROR(store->Announce(request.completed_update(), incarnation_));  // says more of an older replay
  if (!greeted_) {
    RETURN_IF_ERROR(store->CheckStart("the learner's state", request.replay_start()));
    store->SetLearnerConnected(true);
    greeted_ = true;
  }
  const bool visible = !store->options().sync;
  if (request.draw_update() == 0) return visible;
  if (queued_.size() >= kMaxQueuedDraws) {
    return absl::ResourceExhaustedError(
        absl::StrCat("draw of update ", request.draw_update(), ": ", kMaxQueuedDraws, " draws are already waiting"));
  }
  queued_.push_back(request.draw_update());
  return visible;
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
  const std::string wait = absl::StrCat("update ", queued_.front(), " waits: ", missing);
  if (sent_wait_.empty()) spdlog::info("draw waits update={} for={:?}", queued_.front(), wait);
  if (wait == sent_wait_) return false;
  reply_.Clear();
  reply_.set_replay_start(store->start());
  reply_.set_waiting_for(sent_wait_ = wait);
  return true;
}

void ReplayDrawStream::Leave() {
  bool greeted = false;
  {
    MutexLock lock(&mutex_);
    greeted = greeted_;
  }
  if (greeted) streams_->store()->SetLearnerConnected(false);
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
