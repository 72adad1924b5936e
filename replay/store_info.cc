// What Store tells about itself: wait messages, health, counters, Info and ReadRange (declared in store.h).
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "replay/store.h"
#include "spdlog/spdlog.h"

namespace datacom::replay {
namespace {

constexpr double kExpectedWaitSeconds = 2;

std::string Ago(const Clock& clock, Clock::Time then) {
  return absl::StrFormat("%.0f s ago", Seconds(clock.Now() - then));
}

}  // namespace

std::string Store::DescribeSessions(uint32_t member) const {
  std::vector<std::string> parts;
  for (const auto& [number, session] : sessions_->living()) {
    if (!session.serves(member)) continue;
    const CreditFile::Entry& entry = sessions_->credit(session, member);
    parts.push_back(absl::StrCat(session.actor, session.connected() ? " connected" : " not connected", ", credit ",
                                 entry.limit - entry.next_sequence, ", last row ",
                                 Ago(*options_.clock, session.last_row)));
  }
  return parts.empty() ? "no session" : absl::StrCat("sessions: ", absl::StrJoin(parts, "; "));
}

std::string Store::DescribeMissingRowsLocked(uint64_t update) const {
  const uint64_t seen = limiter_.schedule().RowsSeen(update);
  std::vector<std::string> parts;
  uint64_t lacking = 0;
  for (uint32_t member = 0; member < members_.size(); ++member) {
    if (members_[member]->inserted() >= seen || ++lacking > 3) continue;
    parts.push_back(absl::StrCat("member ", member, " has ", members_[member]->inserted(), " of ", seen, " rows (",
                                 DescribeSessions(member), ")"));
  }
  if (lacking > 3) parts.push_back(absl::StrCat(lacking - 3, " more members"));
  return absl::StrJoin(parts, ", ");
}

std::string Store::DescribeMissingRows(uint64_t update) const {
  MutexLock lock(&mutex_);
  return DescribeMissingRowsLocked(update);
}

std::string Store::DescribeMissingCredit(const Session& session) const {
  const std::vector<uint32_t> members = session.members();
  if (learners_ == 0)
    return absl::StrCat("learner: not connected; update ", completed_update_, " of ", limiter_.schedule().LastUpdate(),
                        " is done");
  const uint32_t member = members.front();
  if (members_[member]->inserted() >= limiter_.Allowed(completed_update_)) {
    return absl::StrCat("learner: update ", completed_update_, " of ", limiter_.schedule().LastUpdate(),
                        " is done, which allows member ", member, " no more than its ", members_[member]->inserted(),
                        " rows");
  }
  return absl::StrCat("other actors hold the credit of member ", member, " (", DescribeSessions(member), ")");
}

void Store::UpdateWaits() {
  const Clock::Time now = options_.clock->Now();
  const SessionTable& sessions = *sessions_;  // clang's analysis does not see that the lambda runs with the mutex
  for (auto& [number, session] : sessions_->living()) {
    const std::vector<uint32_t> members = session.members();
    const bool has_credit = Finished() || !session.connected() || members.empty() ||
                            std::any_of(members.begin(), members.end(), [&, &session = session](uint32_t member) {
                              const CreditFile::Entry& entry = sessions.credit(session, member);
                              return entry.limit > entry.next_sequence;
                            });
    if (has_credit) {
      session.has_no_credit = false;
      session.waiting_for.clear();
      continue;
    }
    if (!session.has_no_credit) session.no_credit_since = now;
    session.has_no_credit = true;
    if (Seconds(now - session.no_credit_since) < kExpectedWaitSeconds) continue;
    const std::string reason = DescribeMissingCredit(session);
    if (session.waiting_for.empty())
      spdlog::info("actor waits actor={} session={} for={:?}", session.actor, number, reason);
    session.waiting_for = reason;
  }
}

absl::Status Store::Tick() {
  MutexLock lock(&mutex_);
  std::vector<uint32_t> ended;
  const absl::StatusOr<bool> divided = sessions_->Expire(&ended);
  for (const uint32_t session : ended) spdlog::warn("session ended session={} reason=lease", session);
  EndSessions(ended, divided.ok() && *divided);
  UpdateWaits();
  rows_rate_.Add(static_cast<double>(counters_.inserted));
  return health_.ok() ? divided.status() : health_;
}

absl::Status Store::health() const {
  MutexLock lock(&mutex_);
  return health_;
}

bool Store::Finished() const {
  return std::all_of(members_.begin(), members_.end(),
                     [&](const auto& table) { return table->inserted() >= limiter_.schedule().env_steps; });
}

bool Store::Complete() const {
  MutexLock lock(&mutex_);
  return Finished() && completed_update_ >= limiter_.schedule().LastUpdate();
}

StoreCounters Store::counters() const {
  MutexLock lock(&mutex_);
  StoreCounters counters = counters_;
  for (uint32_t member = 0; member < members_.size(); ++member) {
    const MemberTable& table = *members_[member];
    counters.held += table.held();
    counters.failures += table.failures();
    counters.finished_episodes += table.episodes().finished_count();
    counters.abandoned_episodes += table.episodes().abandoned_count();
    counters.outstanding += sessions_->Outstanding(member);
    const uint64_t due =
        limiter_.schedule().UpdatesAt(table.inserted());  // rows of an update are not late until all are there
    if (due == 0 || completed_update_ == 0) continue;
    counters.ratio_error =
        std::max(counters.ratio_error, std::abs(static_cast<double>(completed_update_) / static_cast<double>(due) - 1));
  }
  counters.sessions = sessions_->living().size();
  return counters;
}

bool Store::ActorsWait() const {
  MutexLock lock(&mutex_);
  return std::any_of(sessions_->living().begin(), sessions_->living().end(),
                     [](const auto& entry) { return entry.second.has_no_credit; });
}

bool Store::LearnerWaits() const {
  MutexLock lock(&mutex_);
  return waiting_draw_ > 0;
}

absl::Status Store::ReadRange(uint32_t member, uint64_t from, uint64_t to, v1::RowRange* range) const {
  MutexLock lock(&mutex_);
  if (member >= members_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("member ", member, ": the run has ", members_.size(), " members"));
  }
  std::vector<uint32_t> sessions;
  RETURN_IF_ERROR(members_[member]->ReadRange(from, to, range, &sessions));
  range->clear_actors();
  for (const uint32_t session : sessions) (*range->mutable_actors())[session] = sessions_->ActorOf(session);
  return absl::OkStatus();
}

void Store::Info(v1::ReplayInfo* info) const {
  MutexLock lock(&mutex_);
  info->set_run_id(options_.run_id);
  info->set_build(BuildName());
  info->set_task(options_.experiment.task());
  info->set_algorithm(options_.experiment.algorithm());
  info->set_schema_fingerprint(schema_.fingerprint());
  info->set_completed_update(completed_update_);
  info->set_learner_connected(learners_ > 0);
  info->set_rows_per_second(rows_rate_.rate());
  info->set_uptime_seconds(Seconds(options_.clock->Now() - started_));
  for (uint32_t i = 0; i < members_.size(); ++i) {
    const MemberTable& table = *members_[i];
    v1::MemberInfo* member = info->add_members();
    member->set_member(i);
    member->set_inserted(table.inserted());
    member->set_allowed(limiter_.Allowed(completed_update_));
    member->set_outstanding(sessions_->Outstanding(i));
    member->set_failures(table.failures());
    member->set_episodes(table.episodes().finished_count());
    member->set_env_steps(limiter_.schedule().env_steps);
    const uint64_t start = limiter_.schedule().min_size;
    if (table.inserted() > start)
      member->set_samples_per_insert(static_cast<double>(completed_update_) / (table.inserted() - start));
    member->set_rejected_rows(rejected_[i]);
    member->set_duplicate_rows(duplicates_[i]);
    member->set_lanes(credit_.lanes(i));
  }
  for (const auto& [number, session] : sessions_->living()) {
    v1::SessionInfo* to = info->add_sessions();
    to->set_session(number);
    to->set_actor(session.actor);
    to->set_environments(session.environments);
    to->set_connected(session.connected());
    *to->mutable_assignment() = session.Assigned();
    to->set_rows(session.rows);
    if (!session.waiting_for.empty()) info->add_waits(absl::StrCat(session.actor, " waits for ", session.waiting_for));
  }
  if (waiting_draw_ > 0)
    info->add_waits(absl::StrCat("learner waits for rows: ", DescribeMissingRowsLocked(waiting_draw_)));
  if (!health_.ok()) info->add_waits(std::string(health_.message()));
}

}  // namespace datacom::replay
