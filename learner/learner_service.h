// The learner's gRPC service, with the callback API: no call holds a thread while it waits. The conversation is in
// proto/datacom/v1/learner.proto.
//
// Subscribe: see subscriptions.h. Fetch and ReadTaskFile have one chunk in flight. Fetch reads the epoch's file if that
// is not in memory, which blocks on the disk. Thread-safe. Must outlive the server that it is registered with. Close
// the hub of snapshots before the server shuts down: that ends every subscription with UNAVAILABLE.
#ifndef DATACOM_LEARNER_LEARNER_SERVICE_H_
#define DATACOM_LEARNER_LEARNER_SERVICE_H_

#include <functional>
#include <string>

#include "datacom/v1/learner.grpc.pb.h"
#include "datacom/v1/task.pb.h"
#include "learner/served_state.h"
#include "learner/subscriptions.h"

namespace datacom::learner {

// Subscribe and Fetch write messages that are already encoded, so that streams share their bytes.
class LearnerService final
    : public v1::Learner::WithRawCallbackMethod_Subscribe<
          v1::Learner::WithRawCallbackMethod_Fetch<v1::Learner::WithCallbackMethod_Lease<
              v1::Learner::WithCallbackMethod_Report<v1::Learner::WithCallbackMethod_ReadTaskFile<
                  v1::Learner::WithCallbackMethod_Info<v1::Learner::Service>>>>>> {
 public:
  static constexpr int kMaxSubscribers = 1024;
  // `served` must outlive the service, whose destructor closes the hub of snapshots. `on_subscribers` gets the number
  // of subscribers whenever it changes; it must not block. Subscribers beyond `max_subscribers` are refused
  // (RESOURCE_EXHAUSTED).
  LearnerService(std::string run_id, ServedState& served, std::function<void(int)> on_subscribers,
                 int max_subscribers = kMaxSubscribers);

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Subscribe(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* Lease(grpc::CallbackServerContext* context, const v1::LeaseRequest* request,
                                  v1::LeaseReply* reply) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Fetch(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* Report(grpc::CallbackServerContext* context, const v1::ReportRequest* request,
                                   v1::ReportReply* reply) override;
  grpc::ServerWriteReactor<v1::TaskFileChunk>* ReadTaskFile(grpc::CallbackServerContext* context,
                                                            const v1::TaskFileRequest* request) override;
  grpc::ServerUnaryReactor* Info(grpc::CallbackServerContext* context, const v1::LearnerInfoRequest* request,
                                 v1::LearnerInfo* reply) override;

  int subscribers() const { return subscriptions_.count(); }

 private:
  absl::StatusOr<Subscriptions::Reactor*> OpenSubscription(grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer& message);
  absl::StatusOr<PublishedPtr> FindPolicy(const grpc::ByteBuffer& message);
  absl::StatusOr<const v1::TaskFile*> FindTaskFile(const v1::TaskFileRequest& request) const;
  absl::Status CheckRun(const v1::Hello& hello) const;

  const std::string run_id_;
  ServedState& served_;
  Subscriptions subscriptions_;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_LEARNER_SERVICE_H_
// SPDX-License-Identifier: Apache-2.0
