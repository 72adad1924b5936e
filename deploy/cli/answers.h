// What the replay and the learner of a run answer. The functions ask once; they block, up to kAnswerDeadline
// for each of the two. Thread-safe.
#ifndef DATACOM_DEPLOY_CLI_ANSWERS_H_
#define DATACOM_DEPLOY_CLI_ANSWERS_H_

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/rpc/security.h"
#include "datacom/v1/learner.pb.h"
#include "datacom/v1/replay.pb.h"

namespace datacom::cli {

inline constexpr std::chrono::milliseconds kAnswerDeadline{3000};

struct Answers {
  std::optional<v1::ReplayInfo> replay;  // nothing: no answer
  std::optional<v1::LearnerInfo> learner;
};

// An empty address is not asked.
Answers Ask(const std::string& replay, const std::string& learner, const Security& security);

// Asks at the addresses in the run folder. FAILED_PRECONDITION when another run answers: the port of a run that has
// ended may belong to another one now. INVALID_ARGUMENT where a run does not answer because of --tls.
absl::StatusOr<Answers> AskRun(const std::string& run_dir, const Security& security);

// Asks again and again in the background, so that a slow answer never delays supervision. Owns one thread, which ends
// with the object (at most one RPC deadline later).
class Poller {
 public:
  explicit Poller(const Security& security);
  ~Poller();
  // Empty = not known yet. Cheap to call again.
  void SetAddresses(const std::string& replay, const std::string& learner);
  // The newest answers; nothing for a service that did not answer the last time.
  Answers newest() const;

 private:
  void Run();

  const Security security_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::string replay_address_ ABSL_GUARDED_BY(mutex_), learner_address_ ABSL_GUARDED_BY(mutex_);
  Answers newest_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace datacom::cli

#endif  // DATACOM_DEPLOY_CLI_ANSWERS_H_
// SPDX-License-Identifier: Apache-2.0
