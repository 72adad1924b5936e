// The learner's gRPC service (conversation: proto/datacom/v1/learner.proto), over transport-free parts that it does not
// own.
//
// Synchronous: a subscriber holds one server thread, blocked in the hub or in flow control; at most `max_subscribers`
// are admitted (RESOURCE_EXHAUSTED beyond). Close the hub before the server shuts down: it ends every subscription.
#ifndef DATACOM_LEARNER_LEARNER_SERVICE_H_
#define DATACOM_LEARNER_LEARNER_SERVICE_H_

#include <atomic>
#include <functional>
#include <string>

#include "datacom/v1/learner.grpc.pb.h"
#include "learner/epoch_policies.h"
#include "learner/evaluations.h"
#include "learner/learner_status.h"
#include "learner/snapshot_hub.h"

namespace datacom::learner {

class LearnerService final : public v1::Learner::Service {
 public:
  struct Parts {
    std::string run_id;
    SnapshotHub* hub = nullptr;
    Evaluations* evaluations = nullptr;
    EpochPolicies* policies = nullptr;
    LearnerStatus* learner_status = nullptr;
    int max_subscribers = 1024;
    std::function<void()> on_subscriber_change = [] {};  // for metrics; called from server threads
  };
  explicit LearnerService(Parts parts) : parts_(std::move(parts)) {}

  grpc::Status Subscribe(grpc::ServerContext* context, const v1::SubscribeRequest* request,
                         grpc::ServerWriter<v1::SnapshotChunk>* writer) override;
  grpc::Status Lease(grpc::ServerContext* context, const v1::LeaseRequest* request, v1::LeaseReply* reply) override;
  grpc::Status Fetch(grpc::ServerContext* context, const v1::FetchRequest* request,
                     grpc::ServerWriter<v1::SnapshotChunk>* writer) override;
  grpc::Status Report(grpc::ServerContext* context, const v1::ReportRequest* request, v1::ReportReply* reply) override;
  grpc::Status Info(grpc::ServerContext* context, const v1::LearnerInfoRequest* request,
                    v1::LearnerInfo* reply) override;

  int subscribers() const { return subscribers_.load(); }

 private:
  const Parts parts_;
  std::atomic<int> subscribers_{0};
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_LEARNER_SERVICE_H_
