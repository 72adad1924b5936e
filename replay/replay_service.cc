#include "replay/replay_service.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/rpc/assignment.h"
#include "common/rpc/message_writer.h"
#include "replay/streams.h"
#include "spdlog/spdlog.h"

namespace datacom::replay {
namespace {

// In lockstep, which promises equal bytes, an actor must have the same simulator as this build.
absl::Status CheckSimulator(const v1::RegisterRequest& request, bool lockstep) {
  const std::string& build = request.hello().build();
  if (!lockstep || !HasOtherSimulator(build)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("actor ", request.actor(), " (build \"", build,
                                                    "\") has another simulator than this replay's build, ", Simulator(),
                                                    "; lockstep needs the same"));
}

}  // namespace

ReplayService::ReplayService(Store* store, Metrics* metrics, std::chrono::milliseconds tick_period)
    : store_(store), streams_(store, metrics) {
  if (store->options().sync) committer_ = std::thread([this] { CommitLoop(); });
  if (tick_period.count() > 0) ticker_ = std::thread([this, tick_period] { TickLoop(tick_period); });
}

ReplayService::~ReplayService() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    stop_changed_.NotifyAll();
  }
  if (ticker_.joinable()) ticker_.join();
  store_->StopCommits();
  if (committer_.joinable()) committer_.join();
}

grpc::ServerUnaryReactor* ReplayService::Register(grpc::CallbackServerContext* context,
                                                  const v1::RegisterRequest* request, v1::RegisterReply* reply) {
  const auto run = [&]() -> absl::Status {
    RETURN_IF_ERROR(
        CheckHello(request->hello(), store_->options().run_id, 0));  // the actor learns the schema from the reply
    RETURN_IF_ERROR(streams_.CheckOpen());
    RETURN_IF_ERROR(CheckSimulator(*request, store_->options().limits.lockstep));
    ASSIGN_OR_RETURN(*reply, store_->Register(request->actor(), request->incarnation(), request->environments()));
    spdlog::info("actor registered actor={} session={} members=\"{}\"", request->actor(), reply->session(),
                 DescribeMembers(reply->assignment()));
    if (HasOtherSimulator(request->hello().build())) {
      spdlog::warn(
          "actor={} build={:?} has another simulator than this replay's build, {}: the same actions give slightly "
          "different rows",
          request->actor(), request->hello().build(), Simulator());
    }
    return absl::OkStatus();
  };
  grpc::ServerUnaryReactor* const reactor = Answer(context, run());
  streams_.NotifyAll();
  return reactor;
}

grpc::ServerBidiReactor<v1::InsertRequest, v1::InsertReply>* ReplayService::Insert(
    grpc::CallbackServerContext* context) {
  return InsertStream::Start<InsertStream>(&streams_);
}

grpc::ServerBidiReactor<v1::DrawRequest, v1::DrawReply>* ReplayService::Draw(grpc::CallbackServerContext* context) {
  return ReplayDrawStream::Start<ReplayDrawStream>(&streams_);
}

grpc::ServerWriteReactor<v1::RowRange>* ReplayService::ReadRange(grpc::CallbackServerContext* context,
                                                                 const v1::ReadRangeRequest* request) {
  return new MessageWriter<v1::RowRange>(
      [store = store_, request = *request, range = v1::RowRange()]() mutable -> absl::StatusOr<const v1::RowRange*> {
        RETURN_IF_ERROR(CheckHello(request.hello(), store->options().run_id, 0));
        RETURN_IF_ERROR(store->ReadRange(request.member(), request.from(), request.to(), &range));
        request.set_from(request.from() + range.row_count());
        return range.row_count() > 0 ? &range : nullptr;
      });
}

grpc::ServerUnaryReactor* ReplayService::Info(grpc::CallbackServerContext* context,
                                              const v1::ReplayInfoRequest* request, v1::ReplayInfo* reply) {
  const v1::Hello& hello = request->hello();
  if (!hello.run_id().empty() && hello.run_id() != store_->options().run_id)
    return Answer(context, CheckHello(hello, store_->options().run_id, 0));
  store_->Info(reply);
  reply->set_draining(streams_.draining());
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* ReplayService::Finish(grpc::CallbackServerContext* context, const v1::FinishRequest* request,
                                                v1::FinishReply* reply) {
  const auto run = [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckHello(request->hello(), store_->options().run_id, 0));
    RETURN_IF_ERROR(store_->Finish(request->completed_update(), request->incarnation()));
    finished_ = true;
    return absl::OkStatus();
  };
  return Answer(context, run());
}

void ReplayService::Tick() {
  const absl::Status status = store_->Tick();
  bool changed = false;
  {
    MutexLock lock(&mutex_);
    changed = tick_status_ != status;
    tick_status_ = status;
  }
  if (changed && !status.ok()) spdlog::error("store: {}", std::string(status.message()));
  streams_.TickAll();
}

void ReplayService::CommitLoop() {
  while (store_->AwaitStaged()) {
    (void)store_->Commit();  // a failure is told to every stream, and ends the loop
    streams_.NotifyAll();
  }
}

void ReplayService::TickLoop(std::chrono::milliseconds period) {
  Clock::Time last = Clock::Real().Now();
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (!stop_) stop_changed_.WaitFor(&mutex_, period);
      if (stop_) return;
    }
    Tick();
    const Clock::Time now = Clock::Real().Now();
    streams_.metrics()->Update(store_->counters(), Seconds(now - last));
    last = now;
  }
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
