#include "common/rpc/insert_session.h"

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/stop.h"
#include "common/rpc/channel.h"
#include "datacom/v1/replay.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "spdlog/spdlog.h"

namespace datacom {
namespace {

constexpr std::chrono::seconds kWaitLogPeriod{10};
constexpr uint32_t kMaxMembers = 1 << 20;
constexpr size_t kMostChunks = 64;  // that are written together

// The owner thread keeps a stream open and writes; a reader thread per stream reads replies. mutex_ guards the state.
class InsertSessionImpl final : public InsertSession {
 public:
  InsertSessionImpl(const Options& options, v1::RegisterReply registration)
      : options_(options),
        registration_(std::move(registration)),
        stub_(v1::Replay::NewStub(options.channel)),
        backoff_(options.incarnation) {
    MutexLock lock(&mutex_);
    Adopt(registration_.assignment());
  }

  ~InsertSessionImpl() override {
    {
      MutexLock lock(&mutex_);
      stop_ = true;
      if (context_ != nullptr) context_->TryCancel();
      to_send_.NotifyAll();
    }
    if (owner_.joinable()) owner_.join();
  }

  const v1::RegisterReply& registration() const override { return registration_; }

  absl::Status Start(uint64_t schema_fingerprint) override {
    if (owner_.joinable()) return absl::FailedPreconditionError("the session has already started");
    fingerprint_ = schema_fingerprint;
    owner_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  std::shared_ptr<const v1::Assignment> assignment() const override {
    MutexLock lock(&mutex_);
    return assignment_;
  }

  void Release(uint32_t member, uint64_t assignment) override {
    MutexLock lock(&mutex_);
    if (assignment != assignment_->number() || !Serves(member)) return;
    if (members_[member].released) return;
    members_[member].released = true;
    ++unsent_releases_;
    MakeReady();
  }

  Allowance allowance(uint32_t member) const override {
    MutexLock lock(&mutex_);
    Allowance allowance;
    if (!opened_ || !status_.ok() || !Serves(member)) return allowance;
    const Member& state = members_[member];
    allowance.rows = state.limit - std::min(state.limit, state.next_sequence);
    allowance.next_sequence = state.next_sequence;
    allowance.min_policy_update = state.min_policy_update;
    return allowance;
  }

  absl::Status Append(uint32_t member, uint32_t rows, std::string columns, const std::string& fault) override {
    MutexLock lock(&mutex_);
    if (!status_.ok())
      return absl::FailedPreconditionError(absl::StrCat("the session is over: ", std::string(status_.message())));
    if (!Serves(member)) {
      return absl::InvalidArgumentError(absl::StrCat("member ", member, " does not belong to this session"));
    }
    Member& state = members_[member];
    if (!opened_ || state.next_sequence + rows > state.limit) {
      return absl::FailedPreconditionError(absl::StrCat("member ", member, ": ", rows, " rows from sequence ",
                                                        state.next_sequence, " exceed the credit, which ends at ",
                                                        state.limit));
    }
    auto request = std::make_shared<v1::InsertRequest>();
    v1::Chunk* chunk = request->mutable_chunk();
    chunk->set_member(member);
    chunk->set_first_sequence(state.next_sequence);
    chunk->set_row_count(rows);
    chunk->set_columns(std::move(columns));
    chunk->set_fault(fault);
    state.next_sequence += rows;
    state.queue.push_back(std::move(request));
    return absl::OkStatus();
  }

  void Send() override {
    MutexLock lock(&mutex_);
    MakeReady();
  }

  uint64_t acknowledged(uint32_t member) const override {
    MutexLock lock(&mutex_);
    return member < members_.size() ? members_[member].acknowledged : 0;
  }

  Changes& changes() override { return *options_.changes; }

  absl::Status Flush(std::chrono::milliseconds timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    MutexLock lock(&mutex_);
    MakeReady();
    while (true) {
      uint64_t left_rows = 0;
      for (const Member& state : members_) left_rows += state.next_sequence - state.acknowledged;
      if (left_rows == 0) return absl::OkStatus();
      if (!status_.ok()) return status_;
      if (!replied_.WaitUntil(&mutex_, deadline))
        return absl::DeadlineExceededError(absl::StrCat(left_rows, " rows are not acknowledged"));
    }
  }

  bool finished() const override {
    MutexLock lock(&mutex_);
    return finished_;
  }
  absl::Status status() const override {
    MutexLock lock(&mutex_);
    return status_;
  }
  std::string waiting_for() const override {
    MutexLock lock(&mutex_);
    return waiting_for_;
  }

 private:
  using Request = std::shared_ptr<v1::InsertRequest>;
  struct Member {
    uint64_t next_sequence = 0, acknowledged = 0, limit = 0, min_policy_update = 0;
    uint64_t hold_until = 0;    // send nothing until the limit reaches this
    bool served = false;        // is in the assignment
    bool released = false;      // the caller will append no further rows under this assignment
    bool release_sent = false;  // the release was sent on this stream
    std::deque<Request> queue;  // appended but not acknowledged, in order
    size_t ready = 0;           // entries of the queue that may be sent
    size_t sent = 0;            // of them, sent on this stream
  };
  using Stream = grpc::ClientReaderWriter<v1::InsertRequest, v1::InsertReply>;

  bool Serves(uint32_t member) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return member < members_.size() && members_[member].served;
  }

  void Adopt(const v1::Assignment& assignment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool newer = assignment_ == nullptr || assignment.number() != assignment_->number();
    assignment_ = std::make_shared<const v1::Assignment>(assignment);
    for (Member& state : members_) state.served = false;
    for (const v1::MemberLanes& entry : assignment.members()) {
      if (entry.member() >= kMaxMembers) {
        status_ = absl::FailedPreconditionError(
            absl::StrCat("the replay assigns member ", entry.member(), "; this client serves at most ", kMaxMembers));
        return;
      }
      if (entry.member() >= members_.size()) members_.resize(entry.member() + 1);
      members_[entry.member()].served = true;
    }
    for (Member& state : members_) {
      if (newer || !state.served) state.released = state.release_sent = false;
      if (!state.served) state.hold_until = 0;  // its credit ends; when it returns, it gets new credit
    }
    CountReleases();
  }

  void CountReleases() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    unsent_releases_ = static_cast<size_t>(std::count_if(
        members_.begin(), members_.end(), [](const Member& state) { return state.released && !state.release_sent; }));
  }

  void MakeReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (Member& state : members_) state.ready = state.queue.size();
    to_send_.NotifyAll();
  }

  static bool MaySend(const Member& state) { return state.sent < state.ready && state.limit >= state.hold_until; }

  // Wakes those for whom a reply may have something. Most replies only acknowledge or only give credit.
  void Notify(bool caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool owner = !status_.ok() || unsent_releases_ > 0 || std::any_of(members_.begin(), members_.end(), MaySend);
    if (owner) to_send_.NotifyAll();
    replied_.NotifyAll();
    if (caller) options_.changes->Report();
  }

  void Run() {
    while (true) {
      const absl::Status ended = RunStream();
      MutexLock lock(&mutex_);
      if (stop_) return;
      if (!ended.ok() && !IsTransient(ended) && status_.ok()) status_ = ended;
      if (!status_.ok()) return Notify(/*caller=*/true);
      const auto until = std::chrono::steady_clock::now() + backoff_.Next();
      while (!stop_ && to_send_.WaitUntil(&mutex_, until)) {
      }
      if (stop_) return;
    }
  }

  absl::Status RunStream() {
    grpc::ClientContext context;
    {
      MutexLock lock(&mutex_);
      if (stop_) return absl::OkStatus();
      context_ = &context;
      synced_ = broken_ = false;
      for (Member& state : members_) {
        state.sent = 0;
        state.release_sent = false;
      }
      CountReleases();
    }
    const std::unique_ptr<Stream> stream = stub_->Insert(&context);
    v1::InsertRequest open;
    *open.mutable_open()->mutable_hello() = MakeHello(options_.run_id, fingerprint_);
    open.mutable_open()->set_session(registration_.session());
    open.mutable_open()->set_incarnation(options_.incarnation);
    stream->Write(open);
    std::thread reader([this, &stream] { Read(stream.get()); });
    std::vector<Request> requests;
    while (NextToSend(&requests) && Write(requests, stream.get())) {
    }
    bool cancel = false;
    {
      MutexLock lock(&mutex_);
      cancel = stop_ || !status_.ok();
    }
    // A failed write means that the stream is over. Its status, perhaps a rejection, comes when the reader reaches the
    // end; cancelling would replace it by CANCELLED.
    if (cancel) context.TryCancel();
    reader.join();
    const grpc::Status status = stream->Finish();
    MutexLock lock(&mutex_);
    context_ = nullptr;
    return FromStreamEnd(status);
  }

  // Waits for what may be sent: chunks, or a release. False when the stream cannot be used any more.
  bool NextToSend(std::vector<Request>* requests) {
    MutexLock lock(&mutex_);
    requests->clear();
    while (true) {
      if (stop_ || broken_ || !status_.ok()) return false;
      if (synced_) {
        while (requests->size() < kMostChunks && NextChunk(requests)) {
        }
        for (const Request& request : *requests) request->mutable_chunk()->set_more(request != requests->back());
        if (!requests->empty() || NextRelease(requests)) return true;
      }
      to_send_.Wait(&mutex_);
    }
  }

  // The transport may hold back what is not the last one.
  static bool Write(const std::vector<Request>& requests, Stream* stream) {
    return std::all_of(requests.begin(), requests.end(), [&](const Request& request) {
      grpc::WriteOptions options;
      if (request != requests.back()) options.set_buffer_hint();
      return stream->Write(*request, options);
    });
  }

  bool NextChunk(std::vector<Request>* requests) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (size_t i = 0; i < members_.size(); ++i) {
      Member& state = members_[(next_turn_ + i) % members_.size()];
      if (!MaySend(state)) continue;
      next_turn_ = (next_turn_ + i + 1) % members_.size();
      requests->push_back(state.queue[state.sent++]);
      return true;
    }
    return false;
  }

  // Adds the releases of all members whose rows are acknowledged, in one message.
  bool NextRelease(std::vector<Request>* requests) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (unsent_releases_ == 0) return false;
    const auto request = std::make_shared<v1::InsertRequest>();
    request->mutable_release()->set_assignment(assignment_->number());
    for (uint32_t member = 0; member < members_.size(); ++member) {
      Member& state = members_[member];
      if (!state.released || state.release_sent || !state.queue.empty()) continue;
      state.release_sent = true;
      --unsent_releases_;
      request->mutable_release()->add_members(member);
    }
    if (request->release().members().empty()) return false;
    requests->push_back(request);
    return true;
  }

  void Read(Stream* stream) {
    v1::InsertReply reply;
    while (stream->Read(&reply)) {
      MutexLock lock(&mutex_);
      const bool first = !opened_;
      Apply(reply);
      backoff_.Reset();
      Notify(first || reply.has_assignment() || reply.credit_size() > 0 || reply.finished() || !status_.ok());
    }
    MutexLock lock(&mutex_);
    broken_ = true;
    to_send_.NotifyAll();
  }

  void Apply(const v1::InsertReply& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reply.has_assignment()) Adopt(reply.assignment());
    for (const v1::Committed& committed : reply.committed()) {
      if (!Serves(committed.member())) continue;
      Member& state = members_[committed.member()];
      if (committed.next_sequence() < state.acknowledged) {
        // The replay's machine lost power. The rows are lost on both sides, so it would reject all later rows as a gap.
        status_ = absl::NotFoundError(absl::StrCat("the replay has lost rows that it had acknowledged: member ",
                                                   committed.member(), " has ", committed.next_sequence(), " rows, ",
                                                   state.acknowledged, " were acknowledged"));
        return;
      }
      if (!opened_)
        state.next_sequence = committed.next_sequence();  // lockstep continues where an earlier process stopped
      state.acknowledged = committed.next_sequence();
      while (!state.queue.empty()) {
        const v1::Chunk& chunk = state.queue.front()->chunk();
        if (chunk.first_sequence() + chunk.row_count() > state.acknowledged) break;
        state.queue.pop_front();
        state.ready -= state.ready > 0 ? 1 : 0;
        state.sent -= state.sent > 0 ? 1 : 0;
      }
    }
    for (const v1::Credit& credit : reply.credit()) {
      if (!Serves(credit.member())) continue;
      Member& state = members_[credit.member()];
      state.limit = credit.limit();
      state.min_policy_update = credit.min_policy_update();
    }
    if (!reply.waiting_for().empty() || reply.credit_size() > 0) waiting_for_ = reply.waiting_for();
    for (const v1::Rejection& rejection : reply.rejections()) ApplyRejection(rejection);
    finished_ = finished_ || reply.finished();
    synced_ = opened_ = true;
  }

  void ApplyRejection(const v1::Rejection& rejection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto code = static_cast<absl::StatusCode>(rejection.code());
    if (!Serves(rejection.member()) ||
        (code != absl::StatusCode::kOutOfRange && code != absl::StatusCode::kResourceExhausted)) {
      status_ = absl::Status(code, rejection.message());  // the same rows would be rejected again
      return;
    }
    Member& state = members_[rejection.member()];
    if (state.queue.empty()) return;
    state.sent = 0;  // resend from the oldest unacknowledged chunk
    const v1::Chunk& oldest = state.queue.front()->chunk();
    if (code == absl::StatusCode::kResourceExhausted)
      state.hold_until = std::max(state.limit + 1, oldest.first_sequence() + oldest.row_count());
  }

  const Options options_;
  const v1::RegisterReply registration_;
  const std::unique_ptr<v1::Replay::Stub> stub_;
  uint64_t fingerprint_ = 0;
  mutable Mutex mutex_;
  CondVar to_send_;  // the owner thread waits: to send, for the end of a backoff
  CondVar replied_;  // Flush waits
  Backoff backoff_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<Member> members_ ABSL_GUARDED_BY(mutex_);  // by number; also those that left
  std::shared_ptr<const v1::Assignment> assignment_ ABSL_GUARDED_BY(mutex_);
  std::string waiting_for_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  size_t unsent_releases_ ABSL_GUARDED_BY(mutex_) = 0;  // members whose release was not sent on this stream
  size_t next_turn_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool opened_ ABSL_GUARDED_BY(mutex_) = false;  // a reply arrived on some stream
  bool synced_ ABSL_GUARDED_BY(mutex_) = false;  // a reply arrived on this stream
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread owner_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<InsertSession>> InsertSession::Register(const Options& options) {
  const auto stub = v1::Replay::NewStub(options.channel);
  v1::RegisterRequest request;
  *request.mutable_hello() = MakeHello(options.run_id, options.schema_fingerprint);
  request.set_actor(options.actor);
  request.set_incarnation(options.incarnation);
  request.set_environments(options.environments);
  Backoff backoff(options.incarnation);
  const auto begin = std::chrono::steady_clock::now(), deadline = begin + options.register_deadline;
  auto logged = begin - kWaitLogPeriod;
  while (true) {
    if (Stop::Process().requested()) return absl::CancelledError("stopped while registering");
    grpc::ClientContext context;
    context.set_deadline(DeadlineIn(kRpcDeadline));
    v1::RegisterReply reply;
    const absl::Status status = FromGrpc(stub->Register(&context, request, &reply));
    if (status.ok()) return std::make_unique<InsertSessionImpl>(options, std::move(reply));
    if (!IsTransient(status)) return status;
    const auto wait = backoff.Next();
    const auto now = std::chrono::steady_clock::now();
    if (now - logged >= kWaitLogPeriod) {
      spdlog::warn("waiting for the replay for {:.0f} s: {}", std::chrono::duration<double>(now - begin).count(),
                   status.ToString());
      logged = now;
    }
    if (now + wait >= deadline) return Annotate(status, "the replay did not answer in time");
    Stop::Process().WaitFor(wait);
  }
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
