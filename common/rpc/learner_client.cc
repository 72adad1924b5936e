#include "common/rpc/learner_client.h"

#include <algorithm>
#include <map>
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
#include "grpcpp/grpcpp.h"

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
    if (data_.empty() && chunk->last()) {
      data_.swap(*chunk->mutable_data());  // without a copy; the next chunk gets the memory of a former snapshot
    } else {
      data_ += chunk->data();
    }
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
      : options_(options), stub_(v1::Learner::NewStub(options.channel)) {
    thread_ = std::thread([this] { Run(); });
  }

  ~GrpcSnapshotSubscriber() override {
    {
      MutexLock lock(&mutex_);
      stop_ = true;
      if (context_ != nullptr) context_->TryCancel();
      changed_.NotifyAll();
    }
    thread_.join();
  }

  void SetMembers(const std::vector<uint32_t>& members) override {
    MutexLock lock(&mutex_);
    std::map<uint32_t, MemberState> next;
    for (const uint32_t member : members) {
      const auto found = members_.find(member);
      next[member] = found == members_.end() ? MemberState{} : found->second;
    }
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (std::equal(next.begin(), next.end(), members_.begin(), members_.end(), same)) return;
    members_ = std::move(next);
    renewed_ = true;
    if (context_ != nullptr) context_->TryCancel();
    changed_.NotifyAll();
  }

  std::shared_ptr<const Snapshot> Latest(uint32_t member) const override {
    MutexLock lock(&mutex_);
    const auto found = members_.find(member);
    return found == members_.end() ? nullptr : found->second.snapshot;
  }

  Changes& changes() override { return *options_.changes; }

  absl::Status status() const override {
    MutexLock lock(&mutex_);
    return status_;
  }

  double age_seconds(uint32_t member) const override {
    MutexLock lock(&mutex_);
    const auto found = members_.find(member);
    if (found == members_.end() || found->second.snapshot == nullptr) return 0;
    return Seconds(Clock::Real().Now() - found->second.arrived);
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
    Backoff backoff(StreamKey("snapshot.backoff", {options_.backoff_seed}));
    for (;;) {
      grpc::ClientContext context;
      v1::SubscribeRequest request;
      {
        MutexLock lock(&mutex_);
        while (!stop_ && members_.empty()) changed_.Wait(&mutex_);
        if (stop_) return;
        context_ = &context;
        renewed_ = false;
        request = Request();
      }
      const absl::Status status = ReadStream(request, &context, &backoff);
      MutexLock lock(&mutex_);
      context_ = nullptr;
      if (stop_) return;
      if (renewed_) continue;
      // Reconnect after a normal end or a broken connection; only a rejection is permanent.
      const bool rejected = absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status) ||
                            absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
      if (rejected) {
        status_ = Annotate(status, "snapshot subscription");
        options_.changes->Report();
        return;
      }
      const auto until = std::chrono::steady_clock::now() + backoff.Next();
      while (!stop_ && !renewed_ && changed_.WaitUntil(&mutex_, until)) {
      }
    }
  }

  v1::SubscribeRequest Request() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    v1::SubscribeRequest request;
    *request.mutable_hello() = MakeHello(options_.run_id, /*schema_fingerprint=*/0);
    for (const auto& [member, state] : members_) {
      v1::Subscription* to = request.add_members();
      to->set_member(member);
      if (state.snapshot == nullptr) continue;
      to->mutable_version()->set_incarnation(state.snapshot->version.incarnation);
      to->mutable_version()->set_update(state.snapshot->version.update);
    }
    return request;
  }

  absl::Status ReadStream(const v1::SubscribeRequest& request, grpc::ClientContext* context, Backoff* backoff) {
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
    if (!snapshot.ok()) {
      ++discarded_;
      spdlog::warn("snapshot discarded: {}", std::string(snapshot.status().message()));
      return;
    }
    const auto found = members_.find(snapshot->member);
    if (found == members_.end()) return;  // it was on its way when the members changed
    MemberState& member = found->second;
    if (member.snapshot != nullptr && !(member.snapshot->version < snapshot->version))
      return;  // sent again after a reconnect
    member.snapshot = std::make_shared<const Snapshot>(*std::move(snapshot));
    member.arrived = Clock::Real().Now();
    options_.changes->Report();
  }

  const Options options_;
  const std::unique_ptr<v1::Learner::Stub> stub_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<uint32_t, MemberState> members_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  uint64_t discarded_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool renewed_ ABSL_GUARDED_BY(mutex_) = false;  // the members changed since the stream was opened
  std::thread thread_;
};

template <class Request, class Reply>
using UnaryCall = grpc::Status (v1::Learner::Stub::*)(grpc::ClientContext*, const Request&, Reply*);

template <class Request, class Reply>
absl::StatusOr<Reply> CallUnary(const std::shared_ptr<grpc::Channel>& channel, UnaryCall<Request, Reply> call,
                                const Request& request, std::chrono::milliseconds deadline) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(deadline));
  Reply reply;
  RETURN_IF_ERROR(FromGrpc((v1::Learner::NewStub(channel).get()->*call)(&context, request, &reply)));
  return reply;
}

}  // namespace

std::unique_ptr<SnapshotSubscriber> SnapshotSubscriber::Start(const Options& options) {
  return std::make_unique<GrpcSnapshotSubscriber>(options);
}

absl::StatusOr<v1::LeaseReply> LeaseEvaluation(const std::shared_ptr<grpc::Channel>& channel,
                                               const v1::LeaseRequest& request) {
  return CallUnary(channel, &v1::Learner::Stub::Lease, request, kRpcDeadline);
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

absl::StatusOr<std::string> FetchTaskFile(const std::shared_ptr<grpc::Channel>& channel,
                                          const v1::TaskFileRequest& request) {
  constexpr size_t kMostBytes = 256 << 20;
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(kFileDeadline));
  auto stub = v1::Learner::NewStub(channel);
  auto reader = stub->ReadTaskFile(&context, request);
  std::string content;
  v1::TaskFileChunk chunk;
  while (reader->Read(&chunk)) {
    content += chunk.data();
    if (content.size() <= kMostBytes) continue;
    context.TryCancel();
    return absl::DataLossError(absl::StrCat("the file ", request.sha256(), " has more than ", kMostBytes, " bytes"));
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return FromGrpc(status);
  return content;
}

absl::StatusOr<v1::ReportReply> ReportEvaluation(const std::shared_ptr<grpc::Channel>& channel,
                                                 const v1::ReportRequest& request) {
  return CallUnary(channel, &v1::Learner::Stub::Report, request, kRpcDeadline);
}

absl::StatusOr<v1::LearnerInfo> GetLearnerInfo(const std::shared_ptr<grpc::Channel>& channel,
                                               std::chrono::milliseconds deadline) {
  v1::LearnerInfoRequest request;
  *request.mutable_hello() = MakeHello(/*run_id=*/"", /*schema_fingerprint=*/0);
  return CallUnary(channel, &v1::Learner::Stub::Info, request, deadline);
}

}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
