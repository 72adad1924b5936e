// Clients of the learner service for actors and evaluators (protocol: proto/datacom/v1/learner.proto).
#ifndef DATACOM_COMMON_RPC_LEARNER_CLIENT_H_
#define DATACOM_COMMON_RPC_LEARNER_CLIENT_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/changes.h"
#include "common/nn/snapshot.h"
#include "datacom/v1/learner.pb.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace datacom {

// Keeps the newest snapshot of each member that it is subscribed to (SetMembers; at first none), over reconnects.
// Thread-safe. A background thread owns the stream; without members no stream is open. Versions only increase. A
// snapshot that fails its CRC or does not decode is counted, logged and ignored.
class SnapshotSubscriber {
 public:
  struct Options {
    std::shared_ptr<grpc::Channel> channel;
    std::string run_id;
    uint64_t backoff_seed = 0;  // differs between actors, so that they do not reconnect at the same time
    // Reports every new snapshot and a permanent rejection.
    std::shared_ptr<Changes> changes = std::make_shared<Changes>();
  };
  static std::unique_ptr<SnapshotSubscriber> Start(const Options& options);
  virtual ~SnapshotSubscriber() = default;
  // Subscribes to these members instead, in increasing order. Snapshots of other members are dropped.
  virtual void SetMembers(const std::vector<uint32_t>& members) = 0;
  virtual std::shared_ptr<const Snapshot> Latest(uint32_t member) const = 0;  // null before the first
  virtual Changes& changes() = 0;                                             // Options::changes, to wait on
  virtual absl::Status status() const = 0;  // a permanent rejection (other run, other protocol), else OK
  // Seconds since the newest snapshot arrived; 0 before the first.
  virtual double age_seconds(uint32_t member) const = 0;
  virtual uint64_t discarded() const = 0;  // snapshots that did not decode
};

// Calls with kRpcDeadline, or `deadline`. They block; the caller retries.
absl::StatusOr<v1::LeaseReply> LeaseEvaluation(const std::shared_ptr<grpc::Channel>& channel,
                                               const v1::LeaseRequest& request);
absl::StatusOr<Snapshot> FetchSnapshot(const std::shared_ptr<grpc::Channel>& channel, const v1::FetchRequest& request);
// TaskFile.gzip of the run's file with this SHA-256. It is not compared with the SHA-256. With kFileDeadline.
inline constexpr std::chrono::minutes kFileDeadline{2};
absl::StatusOr<std::string> FetchTaskFile(const std::shared_ptr<grpc::Channel>& channel,
                                          const v1::TaskFileRequest& request);
absl::StatusOr<v1::ReportReply> ReportEvaluation(const std::shared_ptr<grpc::Channel>& channel,
                                                 const v1::ReportRequest& request);
absl::StatusOr<v1::LearnerInfo> GetLearnerInfo(const std::shared_ptr<grpc::Channel>& channel,
                                               std::chrono::milliseconds deadline);

}  // namespace datacom

#endif  // DATACOM_COMMON_RPC_LEARNER_CLIENT_H_
// SPDX-License-Identifier: Apache-2.0
