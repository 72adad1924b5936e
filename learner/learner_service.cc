#include "learner/learner_service.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/name.h"
#include "common/base/status.h"
#include "common/rpc/message_writer.h"

namespace datacom::learner {

// gRPC and the thread that wakes streams share it. It leaves the map in OnDone.
class Subscriptions::Stream final : public Reactor {
 public:
  Stream(Subscriptions& owner, grpc::CallbackServerContext* context, const v1::SubscribeRequest& request)
      : owner_(owner), context_(context) {
    MutexLock lock(&mutex_);
    for (const v1::Subscription& subscription : request.members()) {
      const SnapshotVersion held = {subscription.version().incarnation(), subscription.version().update()};
      members_.push_back({subscription.member(), 0});
      if (subscription.has_version()) members_.back().seen = owner.hub_.NumberOf(subscription.member(), held);
    }
  }

  // Unless a write is in flight: writes the next chunk, if there is one; ends the stream, if it must end.
  void Advance() {
    const grpc::ByteBuffer* chunk = nullptr;
    bool left = false;
    {
      MutexLock lock(&mutex_);
      if (writing_ || cancelling_ || finished_) return;
      left = left_;
      finished_ = left || owner_.hub_.closed();
      if (!finished_) {
        chunk = NextChunk();
        if (chunk == nullptr) return;
        writing_ = true;
        chunk_ = ++owner_.chunks_;
      }
    }
    // The lock is not held here. `writing_` and `finished_` keep other threads from starting a second operation.
    if (chunk != nullptr) {
      StartWrite(chunk);
    } else if (left) {
      Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the subscriber left"));
    } else {
      Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the learner is stopping"));
    }
  }
  void OnWriteDone(bool ok) override {
    {
      MutexLock lock(&mutex_);
      writing_ = false;
      left_ = left_ || !ok;
    }
    Advance();
  }
  void OnCancel() override {
    {
      MutexLock lock(&mutex_);
      left_ = true;
    }
    Advance();
  }
  void OnDone() override { owner_.Remove(this); }  // may destroy this

  // The snapshot being written, and the number of its chunk among the chunks of all streams; null if nothing is being
  // written or the stream ends.
  std::pair<PublishedPtr, uint64_t> Writes() {
    MutexLock lock(&mutex_);
    if (!writing_ || left_ || finished_) return {nullptr, 0};
    return {snapshot_, chunk_};
  }
  // Breaks off the write and ends the stream.
  void Cancel() {
    {
      MutexLock lock(&mutex_);
      if (!writing_ || left_ || finished_) return;
      left_ = true;
      cancelling_ = true;
    }
    context_->TryCancel();  // without the lock: gRPC may call OnCancel
    {
      MutexLock lock(&mutex_);
      cancelling_ = false;
    }
    Advance();
  }

 private:
  // The next chunk of the snapshot that is being sent, else the first one of a newer snapshot, else null.
  const grpc::ByteBuffer* NextChunk() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (snapshot_ != nullptr && sent_ == snapshot_->chunks().size()) snapshot_ = nullptr;
    for (size_t tried = 0; snapshot_ == nullptr && tried < members_.size(); ++tried) {
      snapshot_ = owner_.hub_.NewerThan(members_[turn_].member, &members_[turn_].seen);
      turn_ = (turn_ + 1) % members_.size();
      sent_ = 0;
    }
    return snapshot_ == nullptr ? nullptr : &snapshot_->chunks()[sent_++];
  }

  struct Member {
    uint32_t member = 0;
    uint64_t seen = 0;  // the publication sent last
  };
  Subscriptions& owner_;
  grpc::CallbackServerContext* const context_;
  Mutex mutex_;
  std::vector<Member> members_ ABSL_GUARDED_BY(mutex_);
  size_t turn_ ABSL_GUARDED_BY(mutex_) = 0;        // index of the member to look at next
  PublishedPtr snapshot_ ABSL_GUARDED_BY(mutex_);  // being sent
  size_t sent_ ABSL_GUARDED_BY(mutex_) = 0;        // chunks of it
  uint64_t chunk_ ABSL_GUARDED_BY(mutex_) = 0;     // number of the newest chunk among all streams' chunks
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelling_ ABSL_GUARDED_BY(mutex_) = false;  // Cancel still needs the call, so the stream must not finish
  bool left_ ABSL_GUARDED_BY(mutex_) = false;        // the subscriber or Cancel has cancelled, or a write has failed
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;    // Finish is called
};

Subscriptions::Subscriptions(SnapshotHub& hub, int limit, std::function<void(int)> on_count)
    : hub_(hub), limit_(limit), on_count_(std::move(on_count)), thread_([this] { WakeStreams(); }) {}

Subscriptions::~Subscriptions() {
  hub_.Close();
  thread_.join();
}

absl::StatusOr<Subscriptions::Reactor*> Subscriptions::Open(grpc::CallbackServerContext* context,
                                                            const v1::SubscribeRequest& request) {
  auto stream = std::make_shared<Stream>(*this, context, request);
  {
    MutexLock lock(&mutex_);
    if (static_cast<int>(streams_.size()) >= limit_) {
      return absl::ResourceExhaustedError(absl::StrCat("there are already ", limit_, " snapshot subscribers"));
    }
    streams_[stream.get()] = stream;
    on_count_(static_cast<int>(streams_.size()));
  }
  stream->Advance();
  return stream.get();  // gRPC calls OnDone only after it has been returned
}

void Subscriptions::WakeStreams() {
  uint64_t seen = 0;
  for (bool open = true; open;) {
    open = hub_.WaitForPublication(&seen);  // once closed, streams are woken a last time, to end
    std::vector<std::shared_ptr<Stream>> streams;
    {
      MutexLock lock(&mutex_);
      for (const auto& [key, stream] : streams_) streams.push_back(stream);
    }
    for (const auto& stream : streams) stream->Advance();
    CancelIdlest(streams);
  }
}

void Subscriptions::CancelIdlest(const std::vector<std::shared_ptr<Stream>>& streams) {
  const int64_t largest = hub_.largest();
  const int64_t most = std::max(kOutdatedBytes, (kOutdatedSnapshots + hub_.members()) * largest);
  if (static_cast<int64_t>(streams.size()) * largest <= most) return;
  struct Senders {  // of one snapshot
    int64_t bytes = 0;
    uint64_t chunk = 0;  // the newest that one of them has begun
    std::vector<Stream*> streams;
  };
  std::map<PublishedPtr, Senders> outdated;
  int64_t total = 0;
  for (const auto& stream : streams) {
    const auto [snapshot, chunk] = stream->Writes();
    if (snapshot == nullptr || hub_.Latest(snapshot->member()) == snapshot) continue;
    Senders& senders = outdated[snapshot];
    if (senders.streams.empty()) total += senders.bytes = snapshot->bytes();
    senders.chunk = std::max(senders.chunk, chunk);
    senders.streams.push_back(stream.get());
  }
  std::vector<const Senders*> order;  // the idlest first
  for (const auto& [snapshot, senders] : outdated) order.push_back(&senders);
  std::sort(order.begin(), order.end(), [](const Senders* a, const Senders* b) { return a->chunk < b->chunk; });
  for (size_t i = 0; i < order.size() && total > most; ++i) {
    for (Stream* stream : order[i]->streams) stream->Cancel();
    total -= order[i]->bytes;
  }
}

void Subscriptions::Remove(Stream* stream) {
  std::shared_ptr<Stream> last;  // destroyed after the lock is released
  MutexLock lock(&mutex_);
  const auto found = streams_.find(stream);
  last = std::move(found->second);
  streams_.erase(found);
  on_count_(static_cast<int>(streams_.size()));
}

namespace {

constexpr size_t kFileChunkBytes = 1 << 20;

// Sends one snapshot, or ends with an error.
Subscriptions::Reactor* Send(const absl::StatusOr<PublishedPtr>& snapshot) {
  return new MessageWriter<grpc::ByteBuffer>(
      [snapshot, sent = size_t{0}]() mutable -> absl::StatusOr<const grpc::ByteBuffer*> {
        RETURN_IF_ERROR(snapshot.status());
        const std::vector<grpc::ByteBuffer>& chunks = (*snapshot)->chunks();
        return sent < chunks.size() ? &chunks[sent++] : nullptr;
      });
}

// INVALID_ARGUMENT for bytes that are not such a message.
template <typename Message>
absl::StatusOr<Message> Decode(grpc::ByteBuffer bytes) {
  Message message;
  if (grpc::SerializationTraits<Message>::Deserialize(&bytes, &message).ok()) return message;
  return absl::InvalidArgumentError(absl::StrCat("the request is not a ", Message::descriptor()->name()));
}

}  // namespace

LearnerService::LearnerService(std::string run_id, ServedState& served, std::function<void(int)> on_subscribers,
                               int max_subscribers)
    : run_id_(std::move(run_id)),
      served_(served),
      subscriptions_(served.snapshots, max_subscribers, std::move(on_subscribers)) {}

absl::Status LearnerService::CheckRun(const v1::Hello& hello) const {
  return CheckHello(hello, run_id_, /*schema_fingerprint=*/0);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* LearnerService::Subscribe(grpc::CallbackServerContext* context,
                                                                      const grpc::ByteBuffer* request) {
  const auto open = [&]() -> absl::StatusOr<Subscriptions::Reactor*> {
    ASSIGN_OR_RETURN(const v1::SubscribeRequest wanted, Decode<v1::SubscribeRequest>(*request));
    RETURN_IF_ERROR(CheckRun(wanted.hello()));
    if (wanted.members().empty()) return absl::InvalidArgumentError("a subscription without members");
    std::set<uint32_t> members;
    for (const v1::Subscription& subscription : wanted.members()) {
      const uint32_t member = subscription.member();
      if (member >= served_.snapshots.members()) {
        return absl::InvalidArgumentError(
            absl::StrCat("member ", member, " was requested, the run has ", served_.snapshots.members()));
      }
      if (!members.insert(member).second)
        return absl::InvalidArgumentError(absl::StrCat("member ", member, " was requested twice"));
    }
    return subscriptions_.Open(context, wanted);
  };
  const auto stream = open();
  return stream.ok() ? *stream : Send(stream.status());
}

grpc::ServerUnaryReactor* LearnerService::Lease(grpc::CallbackServerContext* context, const v1::LeaseRequest* request,
                                                v1::LeaseReply* reply) {
  const auto run = [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckRun(request->hello()));
    RETURN_IF_ERROR(CheckName(request->evaluator()));
    *reply = served_.evaluations.Lease(request->evaluator());
    return absl::OkStatus();
  };
  return Answer(context, run());
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* LearnerService::Fetch(grpc::CallbackServerContext*,
                                                                  const grpc::ByteBuffer* request) {
  const auto find = [&]() -> absl::StatusOr<PublishedPtr> {
    ASSIGN_OR_RETURN(const v1::FetchRequest wanted, Decode<v1::FetchRequest>(*request));
    RETURN_IF_ERROR(CheckRun(wanted.hello()));
    return served_.policies.Get(wanted.epoch(), wanted.member());
  };
  return Send(find());
}

grpc::ServerUnaryReactor* LearnerService::Report(grpc::CallbackServerContext* context, const v1::ReportRequest* request,
                                                 v1::ReportReply* reply) {
  const auto run = [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckRun(request->hello()));
    ASSIGN_OR_RETURN(const bool accepted, served_.evaluations.Report(*request));
    reply->set_accepted(accepted);
    return absl::OkStatus();
  };
  return Answer(context, run());
}

grpc::ServerWriteReactor<v1::TaskFileChunk>* LearnerService::ReadTaskFile(grpc::CallbackServerContext*,
                                                                          const v1::TaskFileRequest* request) {
  const auto find = [&]() -> absl::StatusOr<const v1::TaskFile*> {
    RETURN_IF_ERROR(CheckRun(request->hello()));
    for (const v1::TaskFile& file : served_.task_options->GetExtension(v1::text_task).file()) {
      if (file.has_gzip() && file.sha256() == request->sha256()) return &file;
    }
    return absl::NotFoundError(absl::StrCat("the run has no file with the SHA-256 \"", request->sha256(), "\""));
  };
  return new MessageWriter<v1::TaskFileChunk>(
      [file = find(), options = served_.task_options, sent = size_t{0},
       chunk = v1::TaskFileChunk()]() mutable -> absl::StatusOr<const v1::TaskFileChunk*> {
        RETURN_IF_ERROR(file.status());
        const std::string& content = (*file)->gzip();
        if (sent >= content.size()) return nullptr;
        chunk.set_data(content.substr(sent, kFileChunkBytes));
        sent += chunk.data().size();
        return &chunk;
      });
}

grpc::ServerUnaryReactor* LearnerService::Info(grpc::CallbackServerContext* context,
                                               const v1::LearnerInfoRequest* request, v1::LearnerInfo* reply) {
  const auto run = [&]() -> absl::Status {
    v1::Hello hello = request->hello();
    if (hello.run_id().empty()) hello.set_run_id(run_id_);  // Info answers callers that do not name a run
    RETURN_IF_ERROR(CheckRun(hello));
    *reply = served_.status.Info();
    reply->set_pending_evaluations(served_.evaluations.pending_items());
    if (reply->waiting_for().empty()) {
      reply->set_waiting_for(served_.evaluations.WaitingFor(served_.evaluations.longest_silence()));
    }
    return absl::OkStatus();
  };
  return Answer(context, run());
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
