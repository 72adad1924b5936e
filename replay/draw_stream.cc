#include "replay/draw_stream.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/channel.h"
#include "spdlog/spdlog.h"

namespace datacom {
namespace {

constexpr double kExpectedWaitSeconds = 2;
constexpr size_t kMaxQueuedDraws = 64;

}  // namespace

absl::Status ReplayDrawStream::Handle(const v1::DrawRequest& request) {
  MutexLock lock(&mutex_);
  Store* store = service_->store();
  RETURN_IF_ERROR(service_->CheckOpen());
  if (!greeted_) {
    RETURN_IF_ERROR(CheckHello(request.hello(), store->options().run_id, store->schema().fingerprint()));
    store->SetLearnerConnected(true);
    greeted_ = true;
  }
  store->Announce(request.completed_update());
  if (request.draw_update() == 0) return absl::OkStatus();
  if (wanted_.size() >= kMaxQueuedDraws) {
    return absl::ResourceExhaustedError(
        absl::StrCat("draw of update ", request.draw_update(), ": ", kMaxQueuedDraws, " draws are waiting already"));
  }
  wanted_.push_back(request.draw_update());
  return absl::OkStatus();
}

bool ReplayDrawStream::Next(bool tick) {
  if (wanted_.empty() || closing_) return false;
  Store* store = service_->store();
  const Clock& clock = *store->options().clock;
  reply_.Clear();
  const Clock::Time start = Clock::Real().Now();
  const absl::Status drawn = store->Draw(wanted_.front(), &reply_);
  if (drawn.ok() && reply_.ByteSizeLong() > kMaxMessageBytes) {  // the stream would break, and again when asked again
    End(ToGrpc(absl::FailedPreconditionError(
        absl::StrCat("draw of update ", wanted_.front(), ": ", reply_.ByteSizeLong(),
                     " bytes with the episodes that ended, a message has at most ", kMaxMessageBytes))));
    return false;
  }
  if (drawn.ok()) {
    service_->metrics()->ObserveDraw(Seconds(Clock::Real().Now() - start));
    wanted_.pop_front();
    waiting_ = false;
    told_.clear();
    return true;
  }
  if (!absl::IsUnavailable(drawn)) {
    End(ToGrpc(drawn));
    return false;
  }
  if (!waiting_) waiting_since_ = clock.Now();
  waiting_ = true;
  if (!tick || Seconds(clock.Now() - waiting_since_) < kExpectedWaitSeconds) return false;
  const std::string words = absl::StrCat("update ", wanted_.front(), " waits: ", store->WhoLacks(wanted_.front()));
  if (told_.empty()) spdlog::info("draw waits update={} for={:?}", wanted_.front(), words);
  if (words == told_) return false;
  reply_.Clear();
  reply_.set_waiting_for(told_ = words);
  return true;
}

void ReplayDrawStream::Leave() {
  bool greeted = false;
  {
    MutexLock lock(&mutex_);
    greeted = greeted_;
  }
  if (greeted) service_->store()->SetLearnerConnected(false);
}

}  // namespace datacom
