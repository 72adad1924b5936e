#include "common/rpc/replay_client.h"

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/rpc/channel.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "grpcpp/grpcpp.h"

namespace datacom {
namespace {

constexpr size_t kWindow = 32;  // draws requested on the stream at a time; the replay queues at most 64
constexpr size_t kEnough = 24;  // with so many on the stream, a request may wait for the next announcement
constexpr std::chrono::milliseconds kCloseGrace{2000};

// The owner thread keeps a stream open and writes; a reader thread per stream reads replies. mutex_ guards the state.
class DrawStreamImpl final : public DrawStream {
 public:
  explicit DrawStreamImpl(const Options& options)
      : options_(options), stub_(v1::Replay::NewStub(options.channel)), backoff_(StreamKey(options.run_id, {})) {
    owner_ = std::thread([this] { Run(); });
  }

  // Delivers the last announcement if the replay can be reached, so that the replay knows that the run is complete.
  ~DrawStreamImpl() override {
    {
      MutexLock lock(&mutex_);
      stop_ = true;
      to_send_.NotifyAll();
      const auto deadline = std::chrono::steady_clock::now() + kCloseGrace;
      while (!ended_ && synced_ && arrived_.WaitUntil(&mutex_, deadline)) {
      }
      if (context_ != nullptr) context_->TryCancel();
    }
    owner_.join();
  }

  void Request(uint64_t update) override {
    MutexLock lock(&mutex_);
    outstanding_.push_back(update);
    if (MustSend()) to_send_.NotifyAll();
  }

  void Announce(uint64_t completed_update) override {
    MutexLock lock(&mutex_);
    completed_ = completed_update;
    announce_ = true;
    to_send_.NotifyAll();
  }

  absl::StatusOr<v1::DrawReply> Next(std::chrono::milliseconds timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    MutexLock lock(&mutex_);
    while (true) {
      if (cancelled_) return absl::CancelledError("draws were cancelled");
      if (!ready_.empty()) {
        v1::DrawReply reply = std::move(ready_.front());
        ready_.pop_front();
        return reply;
      }
      if (!status_.ok()) return status_;
      if (arrived_.WaitUntil(&mutex_, deadline)) continue;
      if (!synced_) return absl::DeadlineExceededError(absl::StrCat("the replay cannot be reached: ", last_error_));
      return absl::DeadlineExceededError(waiting_for_.empty() ? "the replay has not answered yet" : waiting_for_);
    }
  }

  uint64_t replay_start() const override {
    MutexLock lock(&mutex_);
    return replay_start_ != 0 ? replay_start_ : options_.replay_start;
  }

  void Cancel() override {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    arrived_.NotifyAll();
  }

 private:
  using Stream = grpc::ClientReaderWriter<v1::DrawRequest, v1::DrawReply>;

  void Run() {
    while (true) {
      const absl::Status ended = RunStream();
      MutexLock lock(&mutex_);
      last_error_ = std::string(ended.message());
      const bool permanent = !ended.ok() && !IsTransient(ended);
      if (permanent && !stop_) status_ = ended;
      if (stop_ || permanent) {
        ended_ = true;
        arrived_.NotifyAll();
        return;
      }
      const auto until = std::chrono::steady_clock::now() + backoff_.Next();
      while (!stop_ && to_send_.WaitUntil(&mutex_, until)) {
      }
    }
  }

  absl::Status RunStream() {
    grpc::ClientContext context;
    v1::DrawRequest request;
    {
      MutexLock lock(&mutex_);
      if (stop_) return absl::OkStatus();
      context_ = &context;
      synced_ = broken_ = false;
      sent_ = 0;
      parts_.Clear();
      request.set_completed_update(completed_);
      announce_ = filling_ = false;
    }
    *request.mutable_hello() = MakeHello(options_.run_id, options_.schema_fingerprint);
    request.set_incarnation(options_.incarnation);
    request.set_replay_start(replay_start());
    const std::unique_ptr<Stream> stream = stub_->Draw(&context);
    const bool greeted = stream->Write(request);
    {
      MutexLock lock(&mutex_);
      synced_ = greeted;
    }
    std::thread reader([this, &stream] { Read(stream.get()); });
    for (bool more = false; NextToSend(&request, &more);) {
      grpc::WriteOptions options;
      if (more) options.set_buffer_hint();  // the transport may hold it back for the next one
      if (!stream->Write(request, options)) break;
    }
    // A failed write means that the stream is over. Its status, perhaps a rejection, comes when the reader reaches the
    // end; cancelling would replace it by CANCELLED.
    stream->WritesDone();
    reader.join();
    const grpc::Status status = stream->Finish();
    MutexLock lock(&mutex_);
    context_ = nullptr;
    synced_ = false;
    return FromStreamEnd(status);
  }

  size_t Wanted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ ? 0 : std::min(outstanding_.size(), kWindow);
  }
  bool MustSend() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return announce_ || filling_ || sent_ < std::min(Wanted(), kEnough);
  }

  // Waits for a request to send; false when the stream cannot be used any more. more: another one follows at once.
  bool NextToSend(v1::DrawRequest* request, bool* more) {
    request->Clear();
    MutexLock lock(&mutex_);
    while (!broken_ && !stop_ && !MustSend()) to_send_.Wait(&mutex_);
    if (broken_ || !MustSend()) return false;
    if (sent_ < Wanted()) request->set_draw_update(outstanding_[sent_++]);
    request->set_completed_update(completed_);
    *more = filling_ = (announce_ || filling_) && sent_ < Wanted();
    announce_ = false;
    return true;
  }

  void Read(Stream* stream) {
    v1::DrawReply reply;
    while (stream->Read(&reply)) {
      MutexLock lock(&mutex_);
      backoff_.Reset();
      waiting_for_ = reply.waiting_for();
      replay_start_ = reply.replay_start();
      if (reply.batches_size() > 0 && !outstanding_.empty() && outstanding_.front() == reply.update()) Add(&reply);
      arrived_.NotifyAll();
      if (MustSend()) to_send_.NotifyAll();
    }
    MutexLock lock(&mutex_);
    broken_ = true;
    to_send_.NotifyAll();
  }

  // Takes a reply to the oldest outstanding request; the last reply completes the draw.
  void Add(v1::DrawReply* reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    parts_.set_update(reply->update());
    for (v1::MemberBatch& batch : *reply->mutable_batches()) parts_.add_batches()->Swap(&batch);
    if (reply->more()) return;
    outstanding_.pop_front();
    --sent_;
    ready_.push_back(std::move(parts_));
    parts_.Clear();
  }

  const Options options_;
  const std::unique_ptr<v1::Replay::Stub> stub_;
  mutable Mutex mutex_;
  CondVar to_send_;  // the owner thread waits: to send, for the end of a backoff
  CondVar arrived_;  // Next waits, and the destructor
  std::deque<uint64_t> outstanding_ ABSL_GUARDED_BY(mutex_);  // requested but not answered, in order
  size_t sent_ ABSL_GUARDED_BY(mutex_) = 0;                   // number of outstanding requests sent on this stream
  v1::DrawReply parts_ ABSL_GUARDED_BY(mutex_);               // the replies so far to the oldest request
  std::deque<v1::DrawReply> ready_ ABSL_GUARDED_BY(mutex_);
  uint64_t completed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool announce_ ABSL_GUARDED_BY(mutex_) = false;
  bool filling_ ABSL_GUARDED_BY(mutex_) = false;  // the requests that an announcement takes along are being sent
  Backoff backoff_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::string waiting_for_ ABSL_GUARDED_BY(mutex_);
  uint64_t replay_start_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string last_error_ ABSL_GUARDED_BY(mutex_) = "not connected yet";
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;   // the owner thread left its loop
  bool synced_ ABSL_GUARDED_BY(mutex_) = false;  // the hello was written
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread owner_;
};

}  // namespace

std::unique_ptr<DrawStream> DrawStream::Open(const Options& options) {
  return std::make_unique<DrawStreamImpl>(options);
}

absl::StatusOr<v1::ReplayInfo> GetReplayInfo(const std::shared_ptr<grpc::Channel>& channel,
                                             std::chrono::milliseconds deadline) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(deadline));
  v1::ReplayInfoRequest request;
  *request.mutable_hello() = MakeHello("", 0);
  v1::ReplayInfo info;
  RETURN_IF_ERROR(FromGrpc(v1::Replay::NewStub(channel)->Info(&context, request, &info)));
  return info;
}

absl::Status FinishRun(const std::shared_ptr<grpc::Channel>& channel, const v1::FinishRequest& request,
                       std::chrono::milliseconds deadline) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(deadline));
  v1::FinishReply reply;
  return FromGrpc(v1::Replay::NewStub(channel)->Finish(&context, request, &reply));
}

absl::Status ReadRange(const std::shared_ptr<grpc::Channel>& channel, const v1::ReadRangeRequest& request,
                       std::chrono::milliseconds deadline,
                       const std::function<absl::Status(const v1::RowRange&)>& consume) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(deadline));
  const auto stub = v1::Replay::NewStub(channel);
  const auto reader = stub->ReadRange(&context, request);
  v1::RowRange range;
  absl::Status consumed;
  while (consumed.ok() && reader->Read(&range)) consumed = consume(range);
  if (!consumed.ok()) context.TryCancel();
  const absl::Status status = FromStreamEnd(reader->Finish());
  return consumed.ok() ? status : consumed;
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
