// Processes the learner's evaluation items (lease, fetch the pinned snapshot, play, report) until the run is finished.
// However often calls are retried, each item counts once: the learner checks the lease. Not thread-safe; Run blocks.
#ifndef DATACOM_ACTOR_EVALUATOR_H_
#define DATACOM_ACTOR_EVALUATOR_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actor/episode_player.h"
#include "common/base/clock.h"
#include "common/nn/snapshot.h"
#include "common/rpc/channel.h"
#include "datacom/v1/learner.pb.h"

namespace datacom::actor {

// The learner's side of the work. Calls block; errors as in common/rpc/learner_client.h.
class EvaluationSource {
 public:
  virtual ~EvaluationSource() = default;
  virtual absl::StatusOr<v1::LeaseReply> Lease() = 0;  // renews and returns the lease already held, if any
  virtual absl::StatusOr<Snapshot> Fetch(uint32_t member, uint32_t epoch) = 0;
  virtual absl::StatusOr<v1::ReportReply> Report(v1::ReportRequest request) = 0;
};

// Asks the learner over gRPC. Each call has a deadline.
std::unique_ptr<EvaluationSource> MakeEvaluationSource(std::shared_ptr<grpc::Channel> channel,
                                                       const std::string& run_id, const std::string& evaluator);

// The parts of a run that the evaluator needs.
struct EvaluatedRun {
  uint64_t seed = 0;
  // Makes a player for up to `batch` episodes at once, of the snapshot's policy.
  std::function<absl::StatusOr<std::unique_ptr<EpisodePlayer>>(const Snapshot&, uint32_t batch)> make_player;
};

class Evaluator {
 public:
  struct Options {
    const Clock* clock = &Clock::Real();
    // Waits; returns true when the process must stop.
    std::function<bool(std::chrono::milliseconds)> wait;
    // Called with the text of the experiment, for the first item and whenever the text changes.
    std::function<absl::StatusOr<EvaluatedRun>(const std::string& experiment)> open_run;
    std::function<void(const char* result, uint32_t episodes)> on_item = [](const char*, uint32_t) {
    };  // accepted, stale, failed
    // Number of an item's episodes whose attempts all met an invalid simulator step; called only when above 0.
    std::function<void(uint32_t)> on_abandoned = [](uint32_t /*episodes*/) {};
  };
  Evaluator(EvaluationSource* source, Options options);

  // OK: the run is finished. CANCELLED: stopped. Otherwise a permanent error, naming member and epoch.
  absl::Status Run();

 private:
  absl::Status Evaluate(const v1::LeaseReply& item);
  absl::StatusOr<std::vector<v1::EvaluationEpisode>> Play(const v1::LeaseReply& item, const Snapshot& snapshot);
  absl::Status Renew(const v1::LeaseReply& item);
  // After a transient error waits for the next backoff; CANCELLED when stopped. Returns a permanent error.
  absl::Status Retry(const absl::Status& error, const char* what);

  EvaluationSource* const source_;
  const Options options_;
  Backoff backoff_;
  std::string experiment_text_;
  EvaluatedRun run_;
  Clock::Time renewed_{}, logged_{};  // logged_: when the current wait was last logged
};

}  // namespace datacom::actor

#endif  // DATACOM_ACTOR_EVALUATOR_H_
// SPDX-License-Identifier: Apache-2.0
