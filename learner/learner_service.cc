#include "learner/learner_service.h"

#include <chrono>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"

namespace datacom::learner {
namespace {

constexpr std::chrono::milliseconds kPoll{500};  // how soon a subscriber that left is noticed

}  // namespace

grpc::Status LearnerService::Subscribe(grpc::ServerContext* context, const v1::SubscribeRequest* request,
                                       grpc::ServerWriter<v1::SnapshotChunk>* writer) {
  const absl::Status hello = CheckHello(request->hello(), parts_.run_id, /*schema_fingerprint=*/0);
  if (!hello.ok()) return ToGrpc(hello);
  const uint64_t first = request->first_member(), count = request->member_count();
  if (count == 0 || first + count > parts_.hub->members()) {
    return ToGrpc(absl::InvalidArgumentError(
        absl::StrCat("members [", first, ", ", first + count, ") asked for, the run has ", parts_.hub->members())));
  }
  struct Admission {
    explicit Admission(LearnerService* s) : service(s), number(++s->subscribers_) {
      service->parts_.on_subscriber_change();
    }
    ~Admission() {
      --service->subscribers_;
      service->parts_.on_subscriber_change();
    }
    LearnerService* const service;
    const int number;
  } admission(this);
  if (admission.number > parts_.max_subscribers) {
    return ToGrpc(
        absl::ResourceExhaustedError(absl::StrCat("more than ", parts_.max_subscribers, " snapshot subscribers")));
  }
  std::vector<PublishedPtr> sent(count);
  while (!context->IsCancelled() && !parts_.hub->closed()) {
    parts_.hub->WaitForNewer(first, sent, kPoll);
    for (uint64_t i = 0; i < count; ++i) {
      PublishedPtr latest = parts_.hub->Latest(first + i);
      if (latest == nullptr || latest == sent[i]) continue;
      if (!latest->ForEachChunk([writer](const v1::SnapshotChunk& chunk) { return writer->Write(chunk); })) {
        return grpc::Status(grpc::StatusCode::CANCELLED, "subscriber left");
      }
      sent[i] = std::move(latest);
    }
  }
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the learner is leaving");
}

grpc::Status LearnerService::Lease(grpc::ServerContext*, const v1::LeaseRequest* request, v1::LeaseReply* reply) {
  const absl::Status hello = CheckHello(request->hello(), parts_.run_id, /*schema_fingerprint=*/0);
  if (!hello.ok()) return ToGrpc(hello);
  if (const absl::Status name = CheckName(request->evaluator()); !name.ok()) return ToGrpc(name);
  *reply = parts_.evaluations->Lease(request->evaluator());
  return grpc::Status::OK;
}

grpc::Status LearnerService::Fetch(grpc::ServerContext*, const v1::FetchRequest* request,
                                   grpc::ServerWriter<v1::SnapshotChunk>* writer) {
  const absl::Status hello = CheckHello(request->hello(), parts_.run_id, /*schema_fingerprint=*/0);
  if (!hello.ok()) return ToGrpc(hello);
  absl::StatusOr<PublishedPtr> snapshot = parts_.policies->Get(request->epoch(), request->member());
  if (!snapshot.ok()) return ToGrpc(snapshot.status());
  (*snapshot)->ForEachChunk([writer](const v1::SnapshotChunk& chunk) { return writer->Write(chunk); });
  return grpc::Status::OK;
}

grpc::Status LearnerService::Report(grpc::ServerContext*, const v1::ReportRequest* request, v1::ReportReply* reply) {
  const absl::Status hello = CheckHello(request->hello(), parts_.run_id, /*schema_fingerprint=*/0);
  if (!hello.ok()) return ToGrpc(hello);
  const absl::StatusOr<bool> accepted = parts_.evaluations->Report(*request);
  if (!accepted.ok()) return ToGrpc(accepted.status());
  reply->set_accepted(*accepted);
  return grpc::Status::OK;
}

grpc::Status LearnerService::Info(grpc::ServerContext*, const v1::LearnerInfoRequest* request, v1::LearnerInfo* reply) {
  v1::Hello hello = request->hello();
  if (hello.run_id().empty()) hello.set_run_id(parts_.run_id);  // Info alone answers whoever asks
  const absl::Status status = CheckHello(hello, parts_.run_id, /*schema_fingerprint=*/0);
  if (!status.ok()) return ToGrpc(status);
  *reply = parts_.learner_status->Info();
  reply->set_pending_evaluations(parts_.evaluations->pending_items());
  return grpc::Status::OK;
}

}  // namespace datacom::learner
