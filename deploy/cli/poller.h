// Polls the state of replay and learner in the background, so that a slow answer never delays supervision.
//
// Thread-safe. Owns one thread that ends with the object (at most one RPC deadline later).
#ifndef DATACOM_DEPLOY_CLI_POLLER_H_
#define DATACOM_DEPLOY_CLI_POLLER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/base/mutex.h"
#include "common/rpc/security.h"
#include "datacom/v1/learner.pb.h"
#include "datacom/v1/replay.pb.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace datacom::cli {

class Poller {
 public:
  explicit Poller(const Security& security);
  ~Poller();
  // Empty = not known yet. Cheap to call again.
  void SetAddresses(const std::string& replay, const std::string& learner);
  // The newest answers; nothing for a service that did not answer the last time.
  std::optional<v1::ReplayInfo> replay() const;
  std::optional<v1::LearnerInfo> learner() const;

 private:
  void Run();
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address);  // only the background thread calls it

  const Security security_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::string replay_address_ ABSL_GUARDED_BY(mutex_), learner_address_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::ReplayInfo> replay_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::LearnerInfo> learner_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
  std::thread thread_;
};

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_POLLER_H_
// SPDX-License-Identifier: Apache-2.0
