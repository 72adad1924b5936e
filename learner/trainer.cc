#include "learner/trainer.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "learner/epoch_stats.h"
#include "learner/guard.h"

namespace datacom::learner {
namespace {

constexpr std::chrono::milliseconds kPoll{100};  // how soon a wait sees that the process is asked to stop
constexpr double kRefreshSeconds = 1;            // of metrics and Info
constexpr double kWaitLogSeconds = 10;           // how often a long wait is explained
constexpr uint64_t kLedgerRows = 1024;           // of a member, read at once: a short pause
constexpr double kFarewellSeconds = 5;           // how long evaluators may take to ask again and hear that it is over

// What a resumed run must share with the one that wrote the checkpoint.
std::string Comparable(v1::Experiment experiment) {
  experiment.mutable_run()->clear_env_steps();
  experiment.mutable_learner()->clear_device();
  return PrintExperiment(experiment);
}

}  // namespace

Trainer::Trainer(Parts parts)
    : parts_(std::move(parts)),
      schedule_(Schedule::Of(parts_.experiment)),
      members_(parts_.experiment.members_size()),
      start_(parts_.clock->Now()),
      refreshed_(start_),
      totals_(members_),
      inserted_(members_),
      lanes_(members_),
      diverged_(members_),
      critics_(members_),
      runaway_(members_) {
  for (int member = 0; member < members_; ++member) {
    const v1::Member& own = parts_.experiment.members(member);
    parts_.metrics->Introduce(member, own.seed(), own.label(),
                              datacom::MemberHyper(parts_.experiment, member).cost_budget());
  }
}

double Trainer::WallSeconds() const { return wall_before_ + Seconds(parts_.clock->Now() - start_); }

absl::Status CheckResume(const v1::LearnerCheckpoint& checkpoint, const std::string& run_id,
                         const v1::Experiment& resolved) {
  if (checkpoint.run_id() != run_id) {
    return absl::FailedPreconditionError(absl::StrCat("the checkpoint at update ", checkpoint.update(),
                                                      " belongs to run ", checkpoint.run_id(),
                                                      ", this learner is of run ", run_id));
  }
  ASSIGN_OR_RETURN(v1::Experiment written, ParseExperiment(checkpoint.experiment(), "the checkpoint's experiment"));
  // Resolved anew: the build that wrote it may not have had every field of today.
  if (Comparable(ResolveExperiment(std::move(written))) != Comparable(resolved)) {
    return absl::InvalidArgumentError(absl::StrCat("the experiment differs from the one of the checkpoint at update ",
                                                   checkpoint.update(), ": on resume only run.env_steps may change"));
  }
  if (const uint64_t last = Schedule::Of(resolved).last_update(); checkpoint.update() > last) {
    return absl::InvalidArgumentError(absl::StrCat("run.env_steps=", resolved.run().env_steps(), " ends at update ",
                                                   last, ", the checkpoint is already at update ",
                                                   checkpoint.update()));
  }
  return absl::OkStatus();
}

void Trainer::Restore(const v1::LearnerCheckpoint& learner) {
  update_ = learner.update();
  pretrain_update_ = learner.pretrain_update();
  next_epoch_ = learner.next_epoch();
  last_epoch_update_ = learner.last_epoch_update();
  last_epoch_steps_ = learner.last_epoch_steps();
  wall_before_ = learner.wall_seconds();
  for (const v1::EpochRecord& record : learner.open()) open_[record.epoch()] = record;
  totals_.assign(learner.totals().begin(), learner.totals().end());
  for (int i = 0; i < members_; ++i) {
    critics_[i] = CriticWatch({totals_[i].critic_losses().begin(), totals_[i].critic_losses().end()});
    runaway_[i] = critics_[i].runaway();
  }
  // The run was made longer: its last epoch, cut short by the old end, goes on with the totals kept in open(). A row
  // that still waits for evaluations is dropped: the epoch's is written at its new end.
  const bool reopened = next_epoch_ > 0 && schedule_.EpochSteps(next_epoch_ - 1) > last_epoch_steps_;
  if (reopened) --next_epoch_;
  for (const v1::EpochRecord& record : learner.pending()) {
    if (!reopened || record.epoch() != next_epoch_) parts_.evaluations->Add(record);
  }
  parts_.learner_status->StartAt(update_, pretrain_update_);
}

absl::Status Trainer::Run(Prefetch* prefetch) {
  RETURN_IF_ERROR(Publish());
  RETURN_IF_ERROR(Refresh());
  absl::Status status = Train(prefetch);
  if (status.ok()) status = WaitForEvaluations();
  return AfterInterruption(std::move(status));
}

absl::Status Trainer::AfterInterruption(absl::Status status) {
  if (absl::IsCancelled(status)) {
    RETURN_IF_ERROR(SaveCheckpoint());
    spdlog::info("interrupted; checkpoint written update={} pretrain_update={}", update_, pretrain_update_);
  }
  return status;
}

absl::Status Trainer::Pretrain(std::unique_ptr<Prefetch> prefetch) {
  if (prefetch == nullptr) return absl::OkStatus();
  const uint64_t target = parts_.experiment.pretrain().updates();
  spdlog::info("pre-training dataset={} updates={} done={}", parts_.experiment.pretrain().dataset(), target,
               pretrain_update_);
  RETURN_IF_ERROR(AfterInterruption(PretrainUpdates(prefetch.get())));
  spdlog::info("pre-training is done updates={} wall_seconds={:.1f}", target, WallSeconds());
  return Refresh();
}

// Nothing acts meanwhile: no snapshot is published, no row and no episode comes.
absl::Status Trainer::PretrainUpdates(Prefetch* prefetch) {
  while (pretrain_update_ < parts_.experiment.pretrain().updates()) {
    PreparedUpdate* prepared = nullptr;
    RETURN_IF_ERROR(NextUpdate(prefetch, &prepared));
    parts_.learner_status->SetPhase("pre-training", "");
    const Clock::Time begin = parts_.clock->Now();
    RETURN_IF_ERROR(Guard("pre-training update", [&] { parts_.algorithm->Pretrain(prepared->batch); }));
    parts_.metrics->PretrainUpdate(Seconds(parts_.clock->Now() - begin));
    pretrain_update_ = prepared->update;
    prefetch->Release(prepared);
    parts_.learner_status->SetPretrainUpdate(pretrain_update_);
    if (pretrain_update_ % parts_.experiment.run().checkpoint_updates() == 0) RETURN_IF_ERROR(SaveCheckpoint());
    if (Seconds(parts_.clock->Now() - refreshed_) >= kRefreshSeconds) RETURN_IF_ERROR(Refresh());
  }
  return absl::OkStatus();
}

absl::Status Trainer::Train(Prefetch* prefetch) {
  if (next_epoch_ == 0) {
    RETURN_IF_ERROR(EndEpoch());
    RETURN_IF_ERROR(SaveCheckpoint());
  }
  while (update_ < schedule_.last_update()) {
    const uint32_t epoch = next_epoch_;
    PreparedUpdate* prepared = nullptr;
    RETURN_IF_ERROR(NextUpdate(prefetch, &prepared));
    parts_.learner_status->SetPhase("learning", "");
    RETURN_IF_ERROR(Step(*prepared));
    prefetch->Release(prepared);
    if (update_ % parts_.experiment.schedule().publish_period() == 0) RETURN_IF_ERROR(Publish());
    prefetch->Announce(update_);
    if (schedule_.RowsSeen(update_) >= parts_.ledger->rows() + kLedgerRows) RETURN_IF_ERROR(AdvanceLedger());
    parts_.learner_status->SetUpdate(update_);
    while (next_epoch_ <= schedule_.last_epoch() && schedule_.EpochUpdate(next_epoch_) <= update_)
      RETURN_IF_ERROR(EndEpoch());
    if (next_epoch_ != epoch || update_ % parts_.experiment.run().checkpoint_updates() == 0)
      RETURN_IF_ERROR(SaveCheckpoint());
    RETURN_IF_ERROR(WriteCompletedEpochs());
    if (Seconds(parts_.clock->Now() - refreshed_) >= kRefreshSeconds) RETURN_IF_ERROR(Refresh());
  }
  if (next_epoch_ <= schedule_.last_epoch()) {
    while (next_epoch_ <= schedule_.last_epoch()) RETURN_IF_ERROR(EndEpoch());
    RETURN_IF_ERROR(SaveCheckpoint());
  }
  return Publish();
}

absl::Status Trainer::NextUpdate(Prefetch* prefetch, PreparedUpdate** prepared) {
  if (parts_.wait_for_stop(std::chrono::milliseconds(0))) return absl::CancelledError("asked to stop");
  const Clock::Time begin = parts_.clock->Now();
  const bool for_draw = !prefetch->decoding();
  Clock::Time logged = begin;
  for (;;) {
    absl::StatusOr<PreparedUpdate*> next = prefetch->Next(kPoll);
    if (next.ok()) {
      parts_.metrics->Waited(Seconds(parts_.clock->Now() - begin), for_draw);
      *prepared = *next;
      return absl::OkStatus();
    }
    if (!absl::IsDeadlineExceeded(next.status())) return Annotate(next.status(), "draws from the replay");
    if (parts_.wait_for_stop(std::chrono::milliseconds(0))) return absl::CancelledError("asked to stop");
    RETURN_IF_ERROR(WriteCompletedEpochs());
    const std::string named = prefetch->waiting_for();
    const std::string why = !named.empty()         ? named
                            : prefetch->decoding() ? "the draw has come and is being decoded"
                                                   : "the draw has not come yet";
    parts_.learner_status->SetPhase(update_ == 0 && named.empty() ? "connecting" : "waiting", why);
    const Clock::Time now = parts_.clock->Now();
    if (Seconds(now - logged) >= kWaitLogSeconds) {
      spdlog::warn("waiting for the batch of update={} since {:.0f} s: {}", update_ + 1, Seconds(now - begin), why);
      logged = now;
    }
  }
}

// No checkpoint is written inside: the records already hold this draw's episodes while update_ still names the one
// before.
absl::Status Trainer::Step(const PreparedUpdate& prepared) {
  RETURN_IF_ERROR(CheckSchedule(prepared));
  inserted_ = prepared.inserted;
  lanes_ = prepared.lanes;
  RETURN_IF_ERROR(RecordEpisodes(prepared));
  // Epochs that end before the first update: their rows are seen only now, their policy is the untrained one.
  while (next_epoch_ <= schedule_.last_epoch() && schedule_.EpochUpdate(next_epoch_) < prepared.update)
    RETURN_IF_ERROR(EndEpoch());
  RETURN_IF_ERROR(ApplyEpisodes(prepared));
  const Clock::Time begin = parts_.clock->Now();
  RETURN_IF_ERROR(Guard("update", [&] { parts_.algorithm->Update(prepared.batch); }));
  parts_.metrics->Update(Seconds(parts_.clock->Now() - begin));
  update_ = prepared.update;
  return absl::OkStatus();
}

absl::Status Trainer::CheckSchedule(const PreparedUpdate& prepared) const {
  for (int member = 0; member < members_; ++member) {
    if (prepared.rows_seen[member] == schedule_.RowsSeen(prepared.update)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "update ", prepared.update, " of member ", member, ": the replay drew from ", prepared.rows_seen[member],
        " rows, the learner's schedule says ", schedule_.RowsSeen(prepared.update), ": it serves another experiment"));
  }
  return absl::OkStatus();
}

v1::EpochRecord& Trainer::OpenEpoch(uint32_t epoch) {
  v1::EpochRecord& record = open_[std::max(epoch, next_epoch_)];
  while (record.members_size() < members_) record.add_members();
  return record;
}

absl::Status Trainer::RecordEpisodes(const PreparedUpdate& prepared) {
  for (const FinishedEpisode& episode : prepared.episodes) {
    const v1::Episode& facts = episode.facts;
    RETURN_IF_ERROR(parts_.records->AppendEpisode(episode.member, facts));
    parts_.metrics->Episode(episode.member, facts);
    v1::MemberEpoch& epoch = *OpenEpoch(schedule_.EpochOfRow(facts.last_row())).mutable_members(episode.member);
    epoch.set_train_episodes(epoch.train_episodes() + 1);
    epoch.set_train_return(epoch.train_return() + facts.return_());
    epoch.set_train_max_violation(epoch.train_max_violation() + facts.max_violation());
    epoch.set_train_sum_cost(epoch.train_sum_cost() + facts.sum_cost());
    // Updates between the policy that acted last and the newest one when the row is first learned from.
    epoch.set_policy_lag(epoch.policy_lag() + static_cast<double>(prepared.update - 1) -
                         static_cast<double>(facts.policy_update()));
    v1::MemberTotals& totals = totals_[episode.member];
    totals.set_episodes(totals.episodes() + 1);
    parts_.learner_status->Edit([&](v1::LearnerInfo* info) {
      v1::MemberProgress* member = info->mutable_members(episode.member);
      member->set_train_return(facts.return_());
      member->set_train_max_violation(facts.max_violation());
      member->set_train_sum_cost(facts.sum_cost());
      member->set_episodes(totals.episodes());
    });
  }
  return absl::OkStatus();
}

// learner/algorithms/README.md 5.3: one step of delta for each finished episode, in row order, before the update that
// first sees the episode's last row.
absl::Status Trainer::ApplyEpisodes(const PreparedUpdate& prepared) {
  for (const FinishedEpisode& episode : prepared.episodes) {
    if (episode.z.empty()) continue;
    RETURN_IF_ERROR(Guard("delta step", [&] {
      parts_.algorithm->ApplyEpisode(episode.member, static_cast<int>(episode.facts.length()), episode.z.data(),
                                     episode.costs.data());
    }));
  }
  return absl::OkStatus();
}

absl::Status Trainer::EndEpoch() {
  std::vector<Snapshot> snapshots;
  RETURN_IF_ERROR(TakeSnapshots(&snapshots));
  RETURN_IF_ERROR(parts_.policies->Write(next_epoch_, std::move(snapshots)));
  Stats stats;
  RETURN_IF_ERROR(Guard("statistics", [&] {
    stats = parts_.algorithm->GetStats();
    if (!schedule_.EndsEarly(next_epoch_)) parts_.algorithm->ResetStats();
  }));
  v1::EpochRecord record = OpenEpoch(next_epoch_);
  // What the run's end cuts short stays open: a longer run goes on with it.
  if (!schedule_.EndsEarly(next_epoch_)) open_.erase(next_epoch_);
  record.set_epoch(next_epoch_);
  record.set_env_steps(schedule_.EpochSteps(next_epoch_));
  record.set_updates(update_);
  record.set_wall_seconds(WallSeconds());
  for (int i = 0; i < members_; ++i) {
    v1::MemberEpoch* member = record.mutable_members(i);
    CopyStats(stats, i, member);
    member->set_inserted(inserted_[i]);
    member->set_lanes(lanes_[i]);
  }
  WatchCritics(stats, &record);
  last_epoch_update_ = update_;
  last_epoch_steps_ = record.env_steps();
  spdlog::info("epoch={} env_steps={} updates={} wall_seconds={:.1f}", next_epoch_, record.env_steps(), update_,
               record.wall_seconds());
  parts_.evaluations->Add(std::move(record));
  ++next_epoch_;
  return Refresh();
}

// An epoch that the run's end cuts short is judged and not kept: a longer run ends it again.
void Trainer::WatchCritics(const Stats& stats, v1::EpochRecord* record) {
  for (int i = 0; i < members_; ++i) {
    CriticWatch watch = critics_[i];
    watch.Add(stats.critic_loss[i]);
    if (watch.runaway() && runaway_[i] == 0) {
      spdlog::warn(
          "member={} seed={} epoch={}: the critic runs away: its loss was {:.4g} within the {} epochs before and is "
          "{:.4g}",
          i, parts_.experiment.members(i).seed(), record->epoch(), watch.before(), CriticWatch::kEpochs, watch.now());
    }
    runaway_[i] = watch.runaway();
    record->mutable_members(i)->set_critic_runaway(watch.runaway());
    if (!schedule_.EndsEarly(record->epoch())) critics_[i] = std::move(watch);
  }
}

absl::Status Trainer::WriteCompletedEpochs() {
  while (std::optional<v1::EpochRecord> record = parts_.evaluations->PopCompleted()) {
    RETURN_IF_ERROR(parts_.records->AppendEpoch(*record));
    for (int i = 0; i < members_; ++i) {
      const EvaluationMeans means = MeansOf(record->members(i).evaluation());
      parts_.metrics->Evaluated(i, means);
      if (means.abandoned > 0) {
        spdlog::warn(
            "evaluation member={} epoch={}: {} of {} episodes met an invalid simulator step in every attempt and do "
            "not count",
            i, record->epoch(), means.abandoned, record->members(i).evaluation_size());
      }
      parts_.learner_status->Edit([&](v1::LearnerInfo* info) {
        info->mutable_members(i)->set_eval_discounted_return(means.discounted_return);
        info->mutable_members(i)->set_eval_sum_cost(means.sum_cost);
      });
    }
  }
  return absl::OkStatus();
}

absl::Status Trainer::WaitForEvaluations() {
  const Clock::Time begin = parts_.clock->Now();
  Clock::Time logged = begin;
  for (bool all_rows = false;;) {
    RETURN_IF_ERROR(WriteCompletedEpochs());
    if (!all_rows) {
      ASSIGN_OR_RETURN(all_rows, FinishLedger());
    }
    const uint32_t pending = parts_.evaluations->pending_items();
    parts_.metrics->SetPendingEvaluations(pending);
    if (pending == 0 && all_rows) break;
    const std::string what = pending > 0 ? absl::StrCat(pending, " evaluations to be reported")
                                         : absl::StrCat("the rows from ", parts_.ledger->rows(), " on, for the ledger");
    parts_.learner_status->SetPhase(pending > 0 ? "evaluating" : "waiting", what);
    const Clock::Time now = parts_.clock->Now();
    if (Seconds(now - logged) >= kWaitLogSeconds) {
      spdlog::warn("waiting for {} since {:.0f} s{}", what, Seconds(now - begin),
                   pending == 0 || parts_.evaluations->asked() ? "" : ": no evaluator has connected");
      logged = now;
    }
    if (parts_.wait_for_stop(kPoll)) return absl::CancelledError("asked to stop");
  }
  RETURN_IF_ERROR(SaveCheckpoint());
  RETURN_IF_ERROR(Refresh());
  parts_.learner_status->SetPhase("finished", "");
  DismissEvaluators();
  return absl::OkStatus();
}

// Only once a checkpoint holds every result: a learner that is killed before would need evaluators again. One that is
// killed here and started again finds nothing to do, so it waits for those that were not told.
void Trainer::DismissEvaluators() {
  parts_.evaluations->Finish();
  const Clock::Time begin = parts_.clock->Now();
  while (!(parts_.evaluations->asked() && parts_.evaluations->everyone_told()) &&
         Seconds(parts_.clock->Now() - begin) < kFarewellSeconds) {
    if (parts_.wait_for_stop(kPoll)) break;
  }
}

absl::Status Trainer::AdvanceLedger() {
  const absl::Status status = parts_.ledger->Advance(update_ == 0 ? 0 : schedule_.RowsSeen(update_));
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return Annotate(status, "ledger");
  spdlog::warn("ledger waits at rows={} of {}: {}", parts_.ledger->rows(), schedule_.RowsSeen(update_),
               std::string(status.message()));
  return absl::OkStatus();
}

absl::StatusOr<bool> Trainer::FinishLedger() {
  const absl::Status status = parts_.ledger->Advance(parts_.experiment.run().env_steps());
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsOutOfRange(status)) return false;
  RETURN_IF_ERROR(Annotate(status, "ledger"));
  return true;
}

absl::Status Trainer::SaveCheckpoint() {
  const Clock::Time begin = parts_.clock->Now();
  RETURN_IF_ERROR(WriteCompletedEpochs());
  RETURN_IF_ERROR(AdvanceLedger());
  RETURN_IF_ERROR(parts_.records->Sync());
  RETURN_IF_ERROR(parts_.ledger->Flush(/*sync=*/true));
  Checkpoint checkpoint;
  v1::LearnerCheckpoint& learner = checkpoint.learner;
  learner.set_run_id(parts_.run_id);
  learner.set_experiment(PrintExperiment(parts_.experiment));
  learner.set_update(update_);
  learner.set_pretrain_update(pretrain_update_);
  learner.set_next_epoch(next_epoch_);
  learner.set_last_epoch_update(last_epoch_update_);
  learner.set_last_epoch_steps(last_epoch_steps_);
  learner.set_wall_seconds(WallSeconds());
  for (v1::FileOffset& file : parts_.records->Offsets()) *learner.add_files() = std::move(file);
  for (v1::FileOffset& file : parts_.ledger->Offsets()) *learner.add_files() = std::move(file);
  for (const auto& [epoch, record] : open_) {
    *learner.add_open() = record;
    learner.mutable_open(learner.open_size() - 1)->set_epoch(epoch);
  }
  for (v1::EpochRecord& record : parts_.evaluations->Pending()) *learner.add_pending() = std::move(record);
  for (int i = 0; i < members_; ++i) {
    v1::MemberTotals* totals = learner.add_totals();
    *totals = totals_[i];
    totals->mutable_critic_losses()->Assign(critics_[i].losses().begin(), critics_[i].losses().end());
  }
  RETURN_IF_ERROR(Guard("saving the algorithm's state", [&] { checkpoint.algorithm = parts_.algorithm->Save(); }));
  RETURN_IF_ERROR(Annotate(parts_.checkpoints->Save(std::move(checkpoint)), "checkpoint"));
  parts_.metrics->Checkpointed(Seconds(parts_.clock->Now() - begin));
  return absl::OkStatus();
}

absl::Status Trainer::TakeSnapshots(std::vector<Snapshot>* snapshots) {
  return Guard("taking snapshots", [&] {
    for (int member = 0; member < members_; ++member) {
      ActingParameters parameters = parts_.algorithm->GetActingParameters(member);
      Snapshot snapshot;
      snapshot.run_id = parts_.run_id;
      snapshot.run_seed = parts_.experiment.run().seed();
      snapshot.member = member;
      snapshot.member_seed = parts_.experiment.members(member).seed();
      snapshot.version = {parts_.incarnation, update_};
      snapshot.task = parts_.experiment.task();
      snapshot.acting_rule = parts_.algorithm->acting_rule();
      snapshot.arrays = std::move(parameters.arrays);
      snapshot.scalars = std::move(parameters.scalars);
      snapshots->push_back(std::move(snapshot));
    }
  });
}

absl::Status Trainer::Publish() {
  std::vector<Snapshot> snapshots;
  RETURN_IF_ERROR(TakeSnapshots(&snapshots));
  for (Snapshot& snapshot : snapshots) parts_.hub->Publish(std::move(snapshot));
  parts_.metrics->Published(members_);
  return absl::OkStatus();
}

absl::Status Trainer::Refresh() {
  refreshed_ = parts_.clock->Now();
  Stats stats;
  RETURN_IF_ERROR(Guard("statistics", [&] { stats = parts_.algorithm->GetStats(); }));
  const uint64_t rows = update_ == 0 ? 0 : schedule_.RowsSeen(update_);
  const uint64_t last = schedule_.last_update();
  for (int i = 0; i < members_; ++i) parts_.metrics->SetCriticRunaway(i, runaway_[i] != 0);
  parts_.metrics->Refresh(rows, last == 0 ? 1.0 : static_cast<double>(update_) / static_cast<double>(last), stats);
  parts_.metrics->SetPendingEvaluations(parts_.evaluations->pending_items());
  for (int i = 0; i < members_; ++i) {
    if (stats.diverged[i] != 0 && diverged_[i] == 0) {
      spdlog::error(
          "member={} seed={} diverged before update={}: a loss was not finite; it is frozen, the others go on", i,
          parts_.experiment.members(i).seed(), update_);
      diverged_[i] = 1;
    }
    parts_.learner_status->Edit([&](v1::LearnerInfo* info) {
      v1::MemberProgress* member = info->mutable_members(i);
      member->set_env_steps(rows);
      member->set_epoch(next_epoch_ == 0 ? 0 : next_epoch_ - 1);
      member->set_status(stats.diverged[i] != 0 ? "diverged" : runaway_[i] != 0 ? "runaway" : "ok");
      member->set_delta(stats.delta[i]);
      member->set_alpha(stats.alpha[i]);
      member->set_delta_steps(stats.delta_steps[i]);
    });
  }
  return absl::OkStatus();
}

}  // namespace datacom::learner
