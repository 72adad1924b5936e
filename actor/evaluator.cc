#include "actor/evaluator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/rpc/learner_client.h"

namespace datacom::actor {
namespace {

class RemoteSource : public EvaluationSource {
 public:
  RemoteSource(std::shared_ptr<grpc::Channel> channel, const std::string& run_id, const std::string& evaluator)
      : channel_(std::move(channel)), run_id_(run_id), evaluator_(evaluator) {}

  absl::StatusOr<v1::LeaseReply> Lease() override {
    v1::LeaseRequest request;
    *request.mutable_hello() = MakeHello(run_id_, 0);
    request.set_evaluator(evaluator_);
    return LeaseEvaluation(channel_, request);
  }
  absl::StatusOr<Snapshot> Fetch(uint32_t member, uint32_t epoch) override {
    v1::FetchRequest request;
    *request.mutable_hello() = MakeHello(run_id_, 0);
    request.set_member(member);
    request.set_epoch(epoch);
    return FetchSnapshot(channel_, request);
  }
  absl::StatusOr<v1::ReportReply> Report(v1::ReportRequest request) override {
    *request.mutable_hello() = MakeHello(run_id_, 0);
    return ReportEvaluation(channel_, request);
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::string run_id_, evaluator_;
};

std::string Name(const v1::LeaseReply& item) { return absl::StrCat("member ", item.member(), " epoch ", item.epoch()); }

constexpr double kWaitLogSeconds = 10;  // between log lines while the learner does not answer

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(std::max<int64_t>(1, static_cast<int64_t>(seconds * 1000)));
}

}  // namespace

std::unique_ptr<EvaluationSource> MakeEvaluationSource(std::shared_ptr<grpc::Channel> channel,
                                                       const std::string& run_id, const std::string& evaluator) {
  return std::make_unique<RemoteSource>(std::move(channel), run_id, evaluator);
}

Evaluator::Evaluator(EvaluationSource* source, Options options)
    : source_(source), options_(std::move(options)), backoff_(StreamKey("evaluator.backoff", {})) {}

absl::Status Evaluator::Retry(const absl::Status& error, const char* what) {
  // A snapshot that was damaged in transit may arrive intact at the next try.
  if (!IsTransient(error) && error.code() != absl::StatusCode::kDataLoss) return Annotate(error, what);
  if (logged_ == Clock::Time{} || Seconds(options_.clock->Now() - logged_) >= kWaitLogSeconds) {
    spdlog::warn("{} failed, retrying: {}", what, error.ToString());
    logged_ = options_.clock->Now();
  }
  if (options_.wait(backoff_.Next())) return absl::CancelledError("stopping was requested");
  return absl::OkStatus();
}

absl::Status Evaluator::Run() {
  while (true) {
    if (options_.wait(std::chrono::milliseconds(0))) return absl::CancelledError("stopping was requested");
    const absl::StatusOr<v1::LeaseReply> item = source_->Lease();
    if (!item.ok()) {
      RETURN_IF_ERROR(Retry(item.status(), "asking the learner for an evaluation"));
      continue;
    }
    backoff_.Reset();
    logged_ = {};
    renewed_ = options_.clock->Now();
    if (item->finished()) return absl::OkStatus();
    if (item->lease() == 0) {
      if (options_.wait(Milliseconds(item->retry_seconds()))) return absl::CancelledError("stopping was requested");
      continue;
    }
    RETURN_IF_ERROR(Evaluate(*item));
  }
}

absl::Status Evaluator::Renew(const v1::LeaseReply& item) {
  if (options_.wait(std::chrono::milliseconds(0))) return absl::CancelledError("stopping was requested");
  if (Seconds(options_.clock->Now() - renewed_) < item.lease_seconds() / 3) return absl::OkStatus();
  const absl::StatusOr<v1::LeaseReply> reply = source_->Lease();
  renewed_ = options_.clock->Now();
  // Keep working while the learner is unreachable: it may be back before the report.
  if (reply.ok() && reply->lease() != item.lease()) {
    return absl::AbortedError(absl::StrCat("the lease of ", Name(item), " was lost"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::EvaluationEpisode>> Evaluator::Play(const v1::LeaseReply& item,
                                                                   const Snapshot& snapshot) {
  if (item.experiment() != experiment_text_) {
    ASSIGN_OR_RETURN(run_, options_.open_run(item.experiment()));
    experiment_text_ = item.experiment();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<EpisodePlayer> player, run_.make_player(snapshot, item.episodes()));
  const EpisodePlayer::Seeds seeds = {run_.seed, snapshot.member_seed, item.epoch()};
  ASSIGN_OR_RETURN(std::vector<v1::EvaluationEpisode> episodes,
                   player->Play(seeds, item.episodes(), [this, &item] { return Renew(item); }));
  uint32_t cut = 0, abandoned = 0;
  for (const v1::EvaluationEpisode& episode : episodes) {
    abandoned += episode.abandoned();
    cut += episode.attempts() - (episode.abandoned() ? 0 : 1);
  }
  if (cut > 0) {
    spdlog::warn("{}: {} attempts met an invalid simulator step; {} of {} episodes failed in all {} attempts",
                 Name(item), cut, abandoned, item.episodes(), EpisodePlayer::kMaxAttempts);
  }
  if (abandoned > 0) options_.on_abandoned(abandoned);
  return episodes;
}

absl::Status Evaluator::Evaluate(const v1::LeaseReply& item) {
  absl::StatusOr<Snapshot> snapshot = source_->Fetch(item.member(), item.epoch());
  if (absl::IsNotFound(snapshot.status())) {
    // The learner resumed from a checkpoint before this epoch: ask for another item.
    spdlog::warn("the learner no longer has {}", Name(item));
    options_.on_item("stale", 0);
    return options_.wait(backoff_.Next()) ? absl::CancelledError("stopping was requested") : absl::OkStatus();
  }
  if (!snapshot.ok()) return Retry(snapshot.status(), "fetching a snapshot");  // Run then leases the same item again
  const absl::StatusOr<std::vector<v1::EvaluationEpisode>> episodes = Play(item, *snapshot);
  if (!episodes.ok()) {
    options_.on_item(absl::IsAborted(episodes.status()) ? "stale" : "failed", 0);
    if (absl::IsAborted(episodes.status())) return absl::OkStatus();
    return Annotate(episodes.status(), absl::StrCat("evaluating ", Name(item)));
  }
  v1::ReportRequest request;
  request.set_lease(item.lease());
  request.set_member(item.member());
  request.set_epoch(item.epoch());
  for (const v1::EvaluationEpisode& episode : *episodes) *request.add_episodes() = episode;
  while (true) {
    const absl::StatusOr<v1::ReportReply> reply = source_->Report(request);
    if (reply.ok()) {
      spdlog::info("evaluated member={} epoch={} episodes={} {}", item.member(), item.epoch(), episodes->size(),
                   reply->accepted() ? "accepted" : "stale");
      options_.on_item(reply->accepted() ? "accepted" : "stale", static_cast<uint32_t>(episodes->size()));
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(Retry(reply.status(), "reporting an evaluation"));
  }
}

}  // namespace datacom::actor
// SPDX-License-Identifier: Apache-2.0
