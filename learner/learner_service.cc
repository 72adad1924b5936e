#include "learner/learner_service.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/name.h"
#include "common/base/status.h"
#include "common/rpc/message_writer.h"

namespace datacom::learner {
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
  auto stream = OpenSubscription(context, *request);
  return stream.ok() ? *stream : Send(stream.status());
}

absl::StatusOr<Subscriptions::Reactor*> LearnerService::OpenSubscription(grpc::CallbackServerContext* context,
                                                                         const grpc::ByteBuffer& message) {
  ASSIGN_OR_RETURN(const v1::SubscribeRequest request, Decode<v1::SubscribeRequest>(message));
  RETURN_IF_ERROR(CheckRun(request.hello()));
  if (request.members().empty()) return absl::InvalidArgumentError("a subscription without members");
  std::set<uint32_t> members;
  for (const v1::Subscription& subscription : request.members()) {
    const uint32_t member = subscription.member();
    if (member >= served_.snapshots.members()) {
      return absl::InvalidArgumentError(
          absl::StrCat("member ", member, " was requested, the run has ", served_.snapshots.members()));
    }
    if (!members.insert(member).second)
      return absl::InvalidArgumentError(absl::StrCat("member ", member, " was requested twice"));
  }
  return subscriptions_.Open(context, request);
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
  return Send(FindPolicy(*request));
}

absl::StatusOr<PublishedPtr> LearnerService::FindPolicy(const grpc::ByteBuffer& message) {
  ASSIGN_OR_RETURN(const v1::FetchRequest request, Decode<v1::FetchRequest>(message));
  RETURN_IF_ERROR(CheckRun(request.hello()));
  return served_.policies.Get(request.epoch(), request.member());
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

absl::StatusOr<const v1::TaskFile*> LearnerService::FindTaskFile(const v1::TaskFileRequest& request) const {
  RETURN_IF_ERROR(CheckRun(request.hello()));
  for (const v1::TaskFile& file : served_.task_options->GetExtension(v1::text_task).file()) {
    if (file.has_gzip() && file.sha256() == request.sha256()) return &file;
  }
  return absl::NotFoundError(absl::StrCat("the run has no file with the SHA-256 \"", request.sha256(), "\""));
}

grpc::ServerWriteReactor<v1::TaskFileChunk>* LearnerService::ReadTaskFile(grpc::CallbackServerContext*,
                                                                          const v1::TaskFileRequest* request) {
  return new MessageWriter<v1::TaskFileChunk>(
      [file = FindTaskFile(*request), options = served_.task_options, sent = size_t{0},
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
