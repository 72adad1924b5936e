#include "learner/trainer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "learner/checked_algorithm.h"

namespace datacom::learner {
namespace {

constexpr std::chrono::milliseconds kPoll{100};  // how often a wait checks whether the process must stop
constexpr double kRefreshSeconds = 1;            // between refreshes of metrics and Info
constexpr double kWaitLogSeconds = 10;           // between log lines of a long wait
constexpr uint64_t kLedgerRows = 1024;           // read at once for each member: few, for a short pause
constexpr double kFarewellSeconds = 5;           // for evaluators to ask again and be told that the run is over

}  // namespace

Trainer::Trainer(RunIdentity run, Algorithm& algorithm, ServedState& served, RunFiles& files, LearnerMetrics& metrics,
                 const Clock& clock, WaitForStop wait_for_stop)
    : run_(std::move(run)),
      algorithm_(algorithm),
      served_(served),
      files_(files),
      metrics_(metrics),
      clock_(clock),
      wait_for_stop_(std::move(wait_for_stop)),
      schedule_(run_.settings.schedule),
      members_(run_.settings.member_count()),
      start_(clock_.Now()),
      refreshed_(start_),
      totals_(members_),
      inserted_(members_),
      lanes_(members_),
      diverged_(members_),
      watches_(members_, MemberWatch({}, run_.settings.on_policy)) {
  for (int member = 0; member < members_; ++member) {
    const v1::Member& own = run_.settings.resolved->members(member);
    metrics_.Introduce(member, own.seed(), own.label(), run_.settings.cost_budgets[member]);
  }
  const uint64_t repeated = files_.updates().repeated();
  metrics_.SetRepeatedUpdates(repeated);
  served_.status.Edit([&](v1::LearnerInfo* info) { info->set_repeated_updates(repeated); });
}

double Trainer::WallSeconds() const { return wall_before_ + Seconds(clock_.Now() - start_); }

void Trainer::Restore(const v1::LearnerCheckpoint& learner) {
  update_ = learner.update();
  pretrain_update_ = learner.pretrain_update();
  replay_start_ = learner.replay_start();
  next_epoch_ = learner.next_epoch();
  last_epoch_update_ = learner.last_epoch_update();
  last_epoch_steps_ = learner.last_epoch_steps();
  wall_before_ = learner.wall_seconds();
  for (const v1::EpochRecord& record : learner.open()) open_[record.epoch()] = record;
  totals_.assign(learner.totals().begin(), learner.totals().end());
  for (int i = 0; i < members_; ++i) watches_[i] = MemberWatch(totals_[i], run_.settings.on_policy);
  // If the run was made longer, its last epoch, which the old end cut short, continues with the totals in open(). If
  // the row of the old end still waits for evaluations, it is dropped: a row is written at the epoch's new end.
  const bool reopened = next_epoch_ > 0 && schedule_.EpochSteps(next_epoch_ - 1) > last_epoch_steps_;
  if (reopened) --next_epoch_;
  for (const v1::EpochRecord& record : learner.pending()) {
    if (!reopened || record.epoch() != next_epoch_) served_.evaluations.Add(record);
  }
  served_.status.StartAt(update_, pretrain_update_);
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
  const uint64_t target = run_.settings.resolved->pretrain().updates();
  spdlog::info("pre-training dataset={} updates={} done={}", run_.settings.resolved->pretrain().dataset(), target,
               pretrain_update_);
  RETURN_IF_ERROR(AfterInterruption(PretrainUpdates(prefetch.get())));
  spdlog::info("pre-training is done updates={} wall_seconds={:.1f}", target, WallSeconds());
  return Refresh();
}

// Nothing acts during pre-training: no snapshot is published, and no rows or episodes arrive.
absl::Status Trainer::PretrainUpdates(Prefetch* prefetch) {
  while (pretrain_update_ < run_.settings.resolved->pretrain().updates()) {
    PreparedUpdate* prepared = nullptr;
    RETURN_IF_ERROR(NextUpdate(prefetch, &prepared));
    served_.status.SetPhase("pre-training", "");
    const Clock::Time begin = clock_.Now();
    RETURN_IF_ERROR(Checked("pre-training update", [&] { algorithm_.Pretrain(prepared->batch); }));
    metrics_.Update(Seconds(clock_.Now() - begin), /*pretrain=*/true);
    pretrain_update_ = prepared->update;
    files_.updates().Reach(pretrain_update_);
    prefetch->Release(prepared);
    served_.status.Edit([&](v1::LearnerInfo* info) { info->set_pretrain_update(pretrain_update_); });
    if (pretrain_update_ % run_.settings.resolved->run().checkpoint_updates() == 0) RETURN_IF_ERROR(SaveCheckpoint());
    if (Seconds(clock_.Now() - refreshed_) >= kRefreshSeconds) RETURN_IF_ERROR(Refresh());
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
    replay_start_ = prefetch->replay_start();
    served_.status.SetPhase("learning", "");
    RETURN_IF_ERROR(Step(*prepared));
    prefetch->Release(prepared);
    if (update_ % run_.settings.resolved->schedule().publish_period() == 0) RETURN_IF_ERROR(Publish());
    prefetch->Announce(update_);
    DATACOM_FAILPOINT("trainer.announced");
    if (schedule_.RowsSeen(update_) >= files_.ledger().rows() + kLedgerRows) RETURN_IF_ERROR(AdvanceLedger());
    served_.status.SetUpdate(update_);
    while (next_epoch_ <= schedule_.last_epoch() && schedule_.EpochUpdate(next_epoch_) <= update_)
      RETURN_IF_ERROR(EndEpoch());
    if (next_epoch_ != epoch || update_ % run_.settings.resolved->run().checkpoint_updates() == 0)
      RETURN_IF_ERROR(SaveCheckpoint());
    RETURN_IF_ERROR(WriteCompletedEpochs());
    if (Seconds(clock_.Now() - refreshed_) >= kRefreshSeconds) RETURN_IF_ERROR(Refresh());
  }
  if (next_epoch_ <= schedule_.last_epoch()) {
    while (next_epoch_ <= schedule_.last_epoch()) RETURN_IF_ERROR(EndEpoch());
    RETURN_IF_ERROR(SaveCheckpoint());
  }
  return Publish();
}

absl::Status Trainer::NextUpdate(Prefetch* prefetch, PreparedUpdate** prepared) {
  if (wait_for_stop_(std::chrono::milliseconds(0))) return absl::CancelledError("asked to stop");
  const Clock::Time begin = clock_.Now();
  const bool for_draw = !prefetch->decoding();
  Clock::Time logged = begin;
  for (;;) {
    absl::StatusOr<PreparedUpdate*> next = prefetch->Next(kPoll);
    if (next.ok()) {
      metrics_.Waited(Seconds(clock_.Now() - begin), for_draw);
      *prepared = *next;
      return absl::OkStatus();
    }
    if (!absl::IsDeadlineExceeded(next.status())) return Annotate(next.status(), "draws from the replay");
    if (wait_for_stop_(std::chrono::milliseconds(0))) return absl::CancelledError("asked to stop");
    RETURN_IF_ERROR(WriteCompletedEpochs());
    const std::string named = prefetch->waiting_for();
    const std::string why = !named.empty()         ? named
                            : prefetch->decoding() ? "the draw has come and is being decoded"
                                                   : "the draw has not come yet";
    served_.status.SetPhase(update_ == 0 && named.empty() ? "connecting" : "waiting", why);
    const Clock::Time now = clock_.Now();
    if (Seconds(now - logged) >= kWaitLogSeconds) {
      spdlog::warn("waiting for the batch of update={} for {:.0f} s: {}", update_ + 1, Seconds(now - begin), why);
      logged = now;
    }
  }
}

// Writes no checkpoint: until update_ is set below, the records are ahead of it by the episodes of this draw.
absl::Status Trainer::Step(const PreparedUpdate& prepared) {
  RETURN_IF_ERROR(CheckSchedule(prepared));
  inserted_ = prepared.inserted;
  lanes_ = prepared.lanes;
  RETURN_IF_ERROR(RecordEpisodes(prepared));
  DATACOM_FAILPOINT("trainer.episodes");
  // Epochs that end before the first update. Their rows are seen only now; their policy is the untrained one.
  while (next_epoch_ <= schedule_.last_epoch() && schedule_.EpochUpdate(next_epoch_) < prepared.update)
    RETURN_IF_ERROR(EndEpoch());
  RETURN_IF_ERROR(ApplyEpisodes(prepared));
  const Clock::Time begin = clock_.Now();
  RETURN_IF_ERROR(Checked("update", [&] { algorithm_.Update(prepared.batch); }));
  metrics_.Update(Seconds(clock_.Now() - begin), /*pretrain=*/false);
  update_ = prepared.update;
  files_.updates().Reach(pretrain_update_ + update_);
  return absl::OkStatus();
}

absl::Status Trainer::CheckSchedule(const PreparedUpdate& prepared) const {
  for (int member = 0; member < members_; ++member) {
    if (prepared.rows_seen[member] == schedule_.RowsSeen(prepared.update)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("update ", prepared.update, " of member ", member, ": the replay drew from ",
                     prepared.rows_seen[member], " rows, but the learner's schedule has ",
                     schedule_.RowsSeen(prepared.update), ": the replay serves another experiment"));
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
    RETURN_IF_ERROR(files_.records().AppendEpisode(episode.member, facts));
    metrics_.Episode(episode.member, facts);
    v1::MemberEpoch& epoch = *OpenEpoch(schedule_.EpochOfRow(facts.last_row())).mutable_members(episode.member);
    epoch.set_train_episodes(epoch.train_episodes() + 1);
    epoch.set_train_return(epoch.train_return() + facts.return_());
    epoch.set_train_max_violation(epoch.train_max_violation() + facts.max_violation());
    epoch.set_train_sum_cost(epoch.train_sum_cost() + facts.sum_cost());
    epoch.set_train_violating_steps(epoch.train_violating_steps() + facts.violating_steps());
    // Updates between the last policy that acted in the episode and the newest policy before this update.
    epoch.set_policy_lag(epoch.policy_lag() + static_cast<double>(prepared.update - 1) -
                         static_cast<double>(facts.policy_update()));
    v1::MemberTotals& totals = totals_[episode.member];
    totals.set_episodes(totals.episodes() + 1);
    served_.status.Edit([&](v1::LearnerInfo* info) {
      v1::MemberProgress* member = info->mutable_members(episode.member);
      member->set_train_return(facts.return_());
      member->set_train_max_violation(facts.max_violation());
      member->set_train_sum_cost(facts.sum_cost());
      member->set_train_violating_steps(facts.violating_steps());
      member->set_episodes(totals.episodes());
    });
  }
  for (int i = 0; i < members_; ++i) {
    const uint64_t abandoned = prepared.abandoned[i];
    if (abandoned == 0) continue;
    v1::MemberEpoch& epoch = *OpenEpoch(schedule_.EpochOfRow(prepared.rows_seen[i])).mutable_members(i);
    epoch.set_train_abandoned(epoch.train_abandoned() + abandoned);
    totals_[i].set_abandoned(totals_[i].abandoned() + abandoned);
    if (totals_[i].fault().empty()) totals_[i].set_fault(prepared.faults[i]);
    metrics_.Abandoned(i, abandoned);
  }
  return absl::OkStatus();
}

// docs/algorithms.md 5.3: one step of delta for each finished episode, in row order, before the update that
// first sees the episode's last row. 18.4: the cost of each finished episode counts for the multiplier.
absl::Status Trainer::ApplyEpisodes(const PreparedUpdate& prepared) {
  std::vector<EpisodeCosts> episodes;
  for (const FinishedEpisode& episode : prepared.episodes) {
    if (episode.costs.empty()) continue;
    episodes.push_back(
        {episode.member, static_cast<int>(episode.costs.size()) - 1, episode.z.data(), episode.costs.data()});
  }
  return episodes.empty() ? absl::OkStatus() : Checked("delta step", [&] { algorithm_.ApplyEpisodes(episodes); });
}

absl::Status Trainer::EndEpoch() {
  ASSIGN_OR_RETURN(std::vector<Snapshot> snapshots, TakeSnapshots());
  RETURN_IF_ERROR(served_.policies.Write(next_epoch_, std::move(snapshots)));
  ASSIGN_OR_RETURN(const Stats stats, Checked("statistics", [&] { return algorithm_.GetStats(); }));
  const bool ends_early = schedule_.EndsEarly(next_epoch_);
  if (!ends_early) {
    RETURN_IF_ERROR(files_.KeepPolicies(next_epoch_));
    RETURN_IF_ERROR(Checked("resetting statistics", [&] { algorithm_.ResetStats(); }));
  }
  v1::EpochRecord record = OpenEpoch(next_epoch_);
  // An epoch that the end of the run cuts short stays open: a longer run continues it.
  if (!ends_early) open_.erase(next_epoch_);
  record.set_epoch(next_epoch_);
  record.set_env_steps(schedule_.EpochSteps(next_epoch_));
  record.set_updates(update_);
  record.set_wall_seconds(WallSeconds());
  for (int i = 0; i < members_; ++i) {
    v1::MemberEpoch* member = record.mutable_members(i);
    member->MergeFrom(stats[i]);  // has none of the training totals
    member->set_inserted(inserted_[i]);
    member->set_lanes(lanes_[i]);
    member->set_abandons(Abandons(totals_[i]));
    member->set_abandoned_reason(totals_[i].fault());
  }
  if (next_epoch_ % run_.settings.resolved->run().eval_period() != 0 && next_epoch_ < schedule_.last_epoch()) {
    for (v1::MemberEpoch& member : *record.mutable_members()) member.set_evaluated(true);  // nothing is to be reported
  }
  WatchMembers(stats, &record);
  last_epoch_update_ = update_;
  last_epoch_steps_ = record.env_steps();
  spdlog::info("epoch={} env_steps={} updates={} wall_seconds={:.1f}", next_epoch_, record.env_steps(), update_,
               record.wall_seconds());
  served_.evaluations.Add(std::move(record));
  ++next_epoch_;
  return Refresh();
}

void Trainer::WatchMembers(const Stats& stats, v1::EpochRecord* record) {
  // Also where an earlier, shorter run ended inside the epoch.
  const uint64_t before = record->epoch() == 0 ? 0 : schedule_.EpochSteps(record->epoch() - 1);
  for (int i = 0; i < members_; ++i) {
    const std::string news =
        watches_[i].EndEpoch(stats[i], record->env_steps() - before, schedule_.EndsEarly(record->epoch()));
    if (!news.empty()) {
      spdlog::warn("member={} seed={} epoch={}: {}", i, run_.settings.resolved->members(i).seed(), record->epoch(),
                   news);
    }
    record->mutable_members(i)->set_critic_runaway(watches_[i].runaway());
    record->mutable_members(i)->set_locked(watches_[i].locked());
  }
}

absl::Status Trainer::WriteCompletedEpochs() {
  while (std::optional<v1::EpochRecord> record = served_.evaluations.PopCompleted()) {
    RETURN_IF_ERROR(files_.records().AppendEpoch(*record));
    for (int i = 0; i < members_; ++i) {
      const EvaluationMeans means = MeansOf(record->members(i).evaluation());
      metrics_.Evaluated(i, means);
      if (means.abandoned > 0) {
        spdlog::warn(
            "evaluation member={} epoch={}: {} of {} episodes do not count: every attempt had an invalid simulator "
            "step",
            i, record->epoch(), means.abandoned, record->members(i).evaluation_size());
      }
      served_.status.Edit([&](v1::LearnerInfo* info) {
        info->mutable_members(i)->set_eval_discounted_return(means.discounted_return);
        info->mutable_members(i)->set_eval_sum_cost(means.sum_cost);
        info->mutable_members(i)->set_eval_violating_steps(means.violating_steps);
      });
    }
  }
  return absl::OkStatus();
}

absl::Status Trainer::WaitForEvaluations() {
  const Clock::Time begin = clock_.Now();
  Clock::Time logged = begin;
  for (bool all_rows = false;;) {
    RETURN_IF_ERROR(WriteCompletedEpochs());
    if (!all_rows) {
      ASSIGN_OR_RETURN(all_rows, FinishLedger());
    }
    const uint32_t pending = served_.evaluations.pending_items();
    metrics_.SetPendingEvaluations(pending);
    if (pending == 0 && all_rows) break;
    const std::string what = pending > 0 ? served_.evaluations.WaitingFor(/*seconds=*/0)
                                         : absl::StrCat("rows from ", files_.ledger().rows(), " for the ledger");
    served_.status.SetPhase(pending > 0 ? "evaluating" : "waiting", what);
    const Clock::Time now = clock_.Now();
    if (Seconds(now - logged) >= kWaitLogSeconds) {
      spdlog::warn("waiting for {} for {:.0f} s", what, Seconds(now - begin));
      logged = now;
    }
    if (wait_for_stop_(kPoll)) return absl::CancelledError("asked to stop");
  }
  RETURN_IF_ERROR(SaveCheckpoint());
  RETURN_IF_ERROR(Refresh());
  served_.status.SetPhase("finished", "");
  DismissEvaluators();
  return absl::OkStatus();
}

// Called after a checkpoint holds every result: a learner that is killed earlier needs the evaluators again. A learner
// that is killed here and started again has nothing left to do and waits here for evaluators that were not told.
void Trainer::DismissEvaluators() {
  served_.evaluations.Finish();
  const Clock::Time begin = clock_.Now();
  while (!served_.evaluations.everyone_told() && Seconds(clock_.Now() - begin) < kFarewellSeconds) {
    if (wait_for_stop_(kPoll)) break;
  }
}

absl::Status Trainer::AdvanceLedger() {
  const absl::Status status = files_.ledger().Advance(update_ == 0 ? 0 : schedule_.RowsSeen(update_));
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return Annotate(status, "ledger");
  spdlog::warn("the ledger has rows={} of {} and waits: {}", files_.ledger().rows(), schedule_.RowsSeen(update_),
               std::string(status.message()));
  return absl::OkStatus();
}

absl::StatusOr<bool> Trainer::FinishLedger() {
  const absl::Status status = files_.ledger().Advance(schedule_.env_steps());
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsOutOfRange(status)) return false;
  RETURN_IF_ERROR(Annotate(status, "ledger"));
  return true;
}

absl::Status Trainer::SaveCheckpoint() {
  const Clock::Time begin = clock_.Now();
  RETURN_IF_ERROR(WriteCompletedEpochs());
  RETURN_IF_ERROR(AdvanceLedger());
  Checkpoint checkpoint;
  v1::LearnerCheckpoint& learner = checkpoint.learner;
  learner.set_run_id(run_.run_id);
  learner.set_experiment(run_.settings.experiment);
  learner.set_update(update_);
  learner.set_pretrain_update(pretrain_update_);
  learner.set_replay_start(replay_start_);
  learner.set_next_epoch(next_epoch_);
  learner.set_last_epoch_update(last_epoch_update_);
  learner.set_last_epoch_steps(last_epoch_steps_);
  learner.set_wall_seconds(WallSeconds());
  for (const auto& [epoch, record] : open_) {
    *learner.add_open() = record;
    learner.mutable_open(learner.open_size() - 1)->set_epoch(epoch);
  }
  for (v1::EpochRecord& record : served_.evaluations.Pending()) *learner.add_pending() = std::move(record);
  for (int i = 0; i < members_; ++i) {
    v1::MemberTotals* totals = learner.add_totals();
    *totals = totals_[i];
    watches_[i].Save(totals);
  }
  ASSIGN_OR_RETURN(checkpoint.algorithm, Checked("saving the algorithm's state", [&] { return algorithm_.Save(); }));
  RETURN_IF_ERROR(files_.Save(std::move(checkpoint)));
  metrics_.Checkpointed(Seconds(clock_.Now() - begin));
  return absl::OkStatus();
}

absl::Status Trainer::CheckEpisodes() const {
  for (int i = 0; i < members_; ++i) {
    const v1::MemberTotals& totals = totals_[i];
    if (totals.episodes() > 0 || totals.abandoned() == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("all ", totals.abandoned(), " training episodes of member ", i,
                                                   " were abandoned, the first one because ", totals.fault()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Snapshot>> Trainer::TakeSnapshots() const {
  ASSIGN_OR_RETURN(std::vector<ActingParameters> acting,
                   Checked("taking snapshots", [&] { return algorithm_.GetActingParameters(); }));
  std::vector<Snapshot> snapshots;
  for (int member = 0; member < members_; ++member) {
    Snapshot& snapshot = snapshots.emplace_back();
    snapshot.run_id = run_.run_id;
    snapshot.run_seed = run_.settings.resolved->run().seed();
    snapshot.member = member;
    snapshot.member_seed = run_.settings.resolved->members(member).seed();
    snapshot.version = {run_.incarnation, update_};
    snapshot.task = run_.settings.resolved->task();
    snapshot.acting_rule = run_.settings.acting_rule;
    snapshot.arrays = std::move(acting[member].arrays);
    snapshot.scalars = std::move(acting[member].scalars);
  }
  return snapshots;
}

absl::Status Trainer::Publish() {
  ASSIGN_OR_RETURN(std::vector<Snapshot> snapshots, TakeSnapshots());
  for (Snapshot& snapshot : snapshots) served_.snapshots.Publish(std::move(snapshot));
  metrics_.Published(members_);
  return absl::OkStatus();
}

absl::Status Trainer::Refresh() {
  refreshed_ = clock_.Now();
  ASSIGN_OR_RETURN(const Stats stats, Checked("statistics", [&] { return algorithm_.GetStats(); }));
  const uint64_t rows = update_ == 0 ? 0 : schedule_.RowsSeen(update_);
  const uint64_t last = schedule_.last_update();
  for (int i = 0; i < members_; ++i) {
    metrics_.SetCriticRunaway(i, watches_[i].runaway());
    metrics_.SetShieldLocked(i, watches_[i].locked());
  }
  metrics_.Refresh(rows, last == 0 ? 1.0 : static_cast<double>(update_) / static_cast<double>(last), stats);
  metrics_.SetPendingEvaluations(served_.evaluations.pending_items());
  for (int i = 0; i < members_; ++i) {
    if (stats[i].diverged() && diverged_[i] == 0) {
      spdlog::error(
          "member={} seed={} diverged before update={}: a loss was not finite; the member is frozen, the others "
          "continue",
          i, run_.settings.resolved->members(i).seed(), update_);
      diverged_[i] = 1;
    }
    served_.status.Edit([&](v1::LearnerInfo* info) {
      v1::MemberProgress* member = info->mutable_members(i);
      member->set_env_steps(rows);
      member->set_epoch(next_epoch_ == 0 ? 0 : next_epoch_ - 1);
      member->set_status(
          StatusOf(stats[i].diverged(), watches_[i].runaway(), Abandons(totals_[i]), watches_[i].locked()));
      member->set_delta(stats[i].delta());
      member->set_alpha(stats[i].alpha());
      member->set_delta_steps(stats[i].delta_steps());
    });
  }
  return absl::OkStatus();
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
