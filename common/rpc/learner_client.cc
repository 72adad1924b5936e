#include "common/rpc/learner_client.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/nn/snapshot_proto.h"
#include "common/rpc/channel.h"
#include "datacom/v1/learner.grpc.pb.h"

namespace datacom {
namespace {

// Assembles snapshots from chunks. A chunk with a manifest begins a new snapshot.
class Assembler {
 public:
  // Returns true when `result` is set: to a complete snapshot or an error.
  bool Add(v1::SnapshotChunk* chunk, absl::StatusOr<Snapshot>* result) {
    if (chunk->has_manifest()) {
      manifest_ = std::move(*chunk->mutable_manifest());
      data_.clear();
      open_ = true;
    }
    if (!open_) {
      *result = absl::DataLossError("snapshot chunk without a manifest before it");
      return true;
    }
    data_ += chunk->data();
    if (data_.size() > manifest_.data_bytes()) {  // never buffer more than announced
      open_ = false;
      *result =
          absl::DataLossError(absl::StrCat("snapshot of member ", manifest_.member(), ": more data than announced"));
      return true;
    }
    if (!chunk->last()) return false;
    open_ = false;
    *result = SnapshotFromManifest(manifest_, data_);
    return true;
  }

 private:
  v1::SnapshotManifest manifest_;
  std::string data_;
  bool open_ = false;
};

class GrpcSnapshotSubscriber : public SnapshotSubscriber {
 public:
  explicit GrpcSnapshotSubscriber(const Options& options)
      : options_(options),
        stub_(v1::Learner::NewStub(options.channel)),
        members_(options.member_count),
        thread_([this] { Run(); }) {}

  ~GrpcSnapshotSubscriber() override {
    {
      MutexLock lock(&mutex_);
      stop_ = true;
      if (context_ != nullptr) context_->TryCancel();
      stopped_.NotifyAll();
    }
    thread_.join();
  }

  std::shared_ptr<const Snapshot> Latest(uint32_t member) const override {
    MutexLock lock(&mutex_);
    const uint32_t index = member - options_.first_member;
    return index < members_.size() ? members_[index].snapshot : nullptr;
  }

  Changes& changes() override { return *options_.changes; }

  absl::Status status() const override {
    MutexLock lock(&mutex_);
    return status_;
  }

  double age_seconds(uint32_t member) const override {
    MutexLock lock(&mutex_);
    const uint32_t index = member - options_.first_member;
    if (index >= members_.size() || members_[index].snapshot == nullptr) return 0;
    return Seconds(Clock::Real().Now() - members_[index].arrived);
  }

  uint64_t discarded() const override {
    MutexLock lock(&mutex_);
    return discarded_;
  }

 private:
  struct MemberState {
    std::shared_ptr<const Snapshot> snapshot;
    Clock::Time arrived{};
  };

  void Run() {
    Backoff backoff(StreamKey("snapshot.backoff", {options_.first_member, options_.member_count}));
    for (;;) {
      grpc::ClientContext context;
      {
        MutexLock lock(&mutex_);
        if (stop_) return;
        context_ = &context;
      }
      const absl::Status status = ReadStream(&context, &backoff);
      MutexLock lock(&mutex_);
      context_ = nullptr;
      if (stop_) return;
      // Reconnect after a normal end or a broken connection; only a rejection is permanent.
      const bool rejected = absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status) ||
                            absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
      if (rejected) {
        status_ = Annotate(status, "snapshot subscription");
        options_.changes->Report();
        return;
      }
      const auto until = std::chrono::steady_clock::now() + backoff.Next();
      while (!stop_ && std::chrono::steady_clock::now() < until) {
        stopped_.WaitFor(&mutex_, until - std::chrono::steady_clock::now());
      }
    }
  }

  absl::Status ReadStream(grpc::ClientContext* context, Backoff* backoff) {
    v1::SubscribeRequest request;
    *request.mutable_hello() = MakeHello(options_.run_id, /*schema_fingerprint=*/0);
    request.set_first_member(options_.first_member);
    request.set_member_count(options_.member_count);
    auto reader = stub_->Subscribe(context, request);
    Assembler assembler;
    v1::SnapshotChunk chunk;
    absl::StatusOr<Snapshot> snapshot = Snapshot{};
    while (reader->Read(&chunk)) {
      if (!assembler.Add(&chunk, &snapshot)) continue;
      backoff->Reset();
      Accept(std::move(snapshot));
    }
    return FromGrpc(reader->Finish());
  }

  void Accept(absl::StatusOr<Snapshot> snapshot) {
    MutexLock lock(&mutex_);
    const uint32_t index = snapshot.ok() ? snapshot->member - options_.first_member : 0;
    if (snapshot.ok() && index >= members_.size()) {
      snapshot = absl::InvalidArgumentError(
          absl::StrCat("snapshot of member ", snapshot->member, ", which was not requested"));
    }
    if (!snapshot.ok()) {
      ++discarded_;
      spdlog::warn("snapshot discarded: {}", std::string(snapshot.status().message()));
      return;
    }
    MemberState& member = members_[index];
    if (member.snapshot != nullptr && !(member.snapshot->version < snapshot->version))
      return;  // sent again after a reconnect
    member.snapshot = std::make_shared<const Snapshot>(*std::move(snapshot));
    member.arrived = Clock::Real().Now();
    options_.changes->Report();
  }

  const Options options_;
  const std::unique_ptr<v1::Learner::Stub> stub_;
  mutable Mutex mutex_;
  CondVar stopped_;
  std::vector<MemberState> members_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  uint64_t discarded_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// A unary call within `deadline`.
template <typename Reply, typename Call>
absl::StatusOr<Reply> CallUnary(std::chrono::milliseconds deadline, Call call) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(deadline));
  Reply reply;
  const grpc::Status status = call(&context, &reply);
  if (!status.ok()) return FromGrpc(status);
  return reply;
}

}  // namespace

std::unique_ptr<SnapshotSubscriber> SnapshotSubscriber::Start(const Options& options) {
  return std::make_unique<GrpcSnapshotSubscriber>(options);
}

absl::StatusOr<v1::LeaseReply> LeaseEvaluation(const std::shared_ptr<grpc::Channel>& channel,
                                               const v1::LeaseRequest& request) {
  return CallUnary<v1::LeaseReply>(kRpcDeadline, [&](grpc::ClientContext* context, v1::LeaseReply* reply) {
    return v1::Learner::NewStub(channel)->Lease(context, request, reply);
  });
}

absl::StatusOr<Snapshot> FetchSnapshot(const std::shared_ptr<grpc::Channel>& channel, const v1::FetchRequest& request) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(kRpcDeadline));
  auto stub = v1::Learner::NewStub(channel);
  auto reader = stub->Fetch(&context, request);
  Assembler assembler;
  v1::SnapshotChunk chunk;
  absl::StatusOr<Snapshot> snapshot = absl::DataLossError(
      absl::StrCat("snapshot of member ", request.member(), ", epoch ", request.epoch(), ": incomplete"));
  while (reader->Read(&chunk)) assembler.Add(&chunk, &snapshot);
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return FromGrpc(status);
  return snapshot;
}

absl::StatusOr<v1::ReportReply> ReportEvaluation(const std::shared_ptr<grpc::Channel>& channel,
                                                 const v1::ReportRequest& request) {
  return CallUnary<v1::ReportReply>(kRpcDeadline, [&](grpc::ClientContext* context, v1::ReportReply* reply) {
    return v1::Learner::NewStub(channel)->Report(context, request, reply);
  });
}

absl::StatusOr<v1::LearnerInfo> GetLearnerInfo(const std::shared_ptr<grpc::Channel>& channel,
                                               std::chrono::milliseconds deadline) {
  v1::LearnerInfoRequest request;
  *request.mutable_hello() = MakeHello(/*run_id=*/"", /*schema_fingerprint=*/0);
  return CallUnary<v1::LearnerInfo>(deadline, [&](grpc::ClientContext* context, v1::LearnerInfo* reply) {
    return v1::Learner::NewStub(channel)->Info(context, request, reply);
  });
}

}  // namespace datacom
