#include "replay/store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "replay/row_order.h"
#include "replay/waits.h"
#include "spdlog/spdlog.h"

namespace datacom::replay {
namespace {

std::string FinishedFile(const Options& options) { return options.folder + "/finished"; }

// What it holds: the last update and the run.
std::string FinishedText(const Options& options) {
  return absl::StrCat(options.limits.schedule.LastUpdate(), " ", options.run_id, "\n");
}

}  // namespace

Store::Store(const RowSchema& schema, const Options& options, std::unique_ptr<Tables> tables)
    : schema_(schema),
      options_(options),
      tables_(std::move(tables)),
      start_(tables_->sessions().starts().back()),
      commit_(tables_.get(), options.sync),
      draws_(tables_.get(), schema, options),
      statistics_(static_cast<uint32_t>(options.members.size()), options.clock) {}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const RowSchema& schema, const Options& options) {
  if (!options.new_rows) RETURN_IF_ERROR(CheckDrawSize(schema, uint64_t{options.batch} + options.failure_batch));
  ASSIGN_OR_RETURN(auto tables, Tables::Open(schema, options));
  std::unique_ptr<Store> store(new Store(schema, options, std::move(tables)));
  RETURN_IF_ERROR(store->Commit());  // what Tables::Open has completed
  return store;
}

absl::Status Store::CheckStart(const std::string& part, uint64_t start) const {
  MutexLock lock(&mutex_);
  return tables_->sessions().CheckStart(part, start);
}

void Store::Grant(uint32_t member) {
  tables_->Grant(member, draws_.completed_update());
  commit_.NotifyStaged();
}

void Store::GrantAll() {
  for (uint32_t member = 0; member < tables_->members(); ++member) Grant(member);
}

void Store::EndSessions(const std::vector<uint32_t>& ended, bool divided) {
  if (ended.empty() && !divided) return;
  tables_->SessionsChanged(ended);
  GrantAll();
}

absl::StatusOr<v1::RegisterReply> Store::Register(const std::string& actor, uint64_t incarnation,
                                                  uint32_t environments) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(commit_.health());
  std::vector<uint32_t> ended;
  auto registered = tables_->sessions().Register(actor, incarnation, environments, &ended);
  EndSessions(ended, registered.ok());
  RETURN_IF_ERROR(registered.status());
  const Session& session = **registered;
  v1::RegisterReply reply;
  reply.set_session(session.number);
  reply.set_experiment(options_.experiment_text);
  *reply.mutable_assignment() = session.Assigned();
  reply.set_lease_seconds(Seconds(options_.lease));
  if (!options_.limits.lockstep) return reply;
  const std::vector<uint32_t> served = session.members();
  RETURN_IF_ERROR(commit_.Commit(&mutex_));  // the actor continues after the rows of the process before it
  for (const uint32_t member : served) {
    const EpisodeSummary episode = tables_->member(member).episodes().OpenOrNext(reply.session(), 0);
    v1::OpenEpisode* open = reply.add_open_episodes();
    open->set_member(member);
    open->set_episode(episode.facts.episode());
    open->set_steps(episode.facts.length());
    if (episode.facts.length() == 0) continue;
    open->set_actions(tables_->member(member).Actions(episode));
    open->set_memory(tables_->member(member).Memory(episode));
  }
  return reply;
}

absl::StatusOr<uint64_t> Store::Connect(uint32_t session, uint64_t incarnation) {
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Session * found, tables_->sessions().Find(session, incarnation));
  found->stream = next_stream_++;
  for (const uint32_t member : found->members()) Grant(member);
  return found->stream;
}

void Store::Disconnect(uint32_t session, uint64_t stream) {
  MutexLock lock(&mutex_);
  const absl::StatusOr<Session*> found = tables_->sessions().Find(session);
  if (!found.ok() || (*found)->stream != stream) return;
  (*found)->stream = 0;
  (*found)->has_no_credit = false;
  (*found)->last_seen = options_.clock->Now();
}

absl::StatusOr<Session*> Store::FindStream(uint32_t session, uint64_t stream) const {
  ASSIGN_OR_RETURN(Session * found, tables_->sessions().Find(session));
  if (found->stream != stream)
    return absl::AbortedError(absl::StrCat("session ", session, ": another stream took over"));
  return found;
}

absl::Status Store::CheckChunk(const Session& session, const v1::Chunk& chunk) const {
  if (!session.serves(chunk.member()) || chunk.member() >= tables_->members()) {
    return absl::InvalidArgumentError(absl::StrCat("member ", chunk.member(), ": session ", session.number,
                                                   " serves members ", absl::StrJoin(session.members(), ", ")));
  }
  const uint32_t environments = options_.limits.lockstep ? 1 : session.environments;
  RETURN_IF_ERROR(ValidateChunk(schema_, chunk, environments));
  RETURN_IF_ERROR(CheckCredit(session, chunk));
  return tables_->member(chunk.member())
      .CheckOrder(session.number, chunk.columns(), chunk.row_count(), static_cast<uint32_t>(KnownRows(session, chunk)));
}

uint64_t Store::KnownRows(const Session& session, const v1::Chunk& chunk) const {
  const uint64_t next = tables_->sessions().credit(session, chunk.member()).next_sequence;
  return std::min<uint64_t>(chunk.row_count(), next - chunk.first_sequence());
}

void Store::Reject(const v1::Chunk& chunk, const absl::Status& why, v1::InsertReply* reply) {
  statistics_.CountRejected(chunk, why.code());
  v1::Rejection* rejection = reply->add_rejections();
  rejection->set_member(chunk.member());
  rejection->set_first_sequence(chunk.first_sequence());
  rejection->set_code(static_cast<int32_t>(why.code()));
  rejection->set_message(std::string(why.message()));
}

absl::Status Store::CheckCredit(const Session& session, const v1::Chunk& chunk) const {
  const uint32_t member = chunk.member();
  const CreditFile::Entry& entry = tables_->sessions().credit(session, member);
  const uint64_t first = chunk.first_sequence(), end = first + chunk.row_count(), next = entry.next_sequence;
  if (end <= next) return absl::OkStatus();
  if (first > next) {
    return absl::OutOfRangeError(absl::StrCat("gap: session ", session.number, ", member ", member, ": sequence ", next,
                                              " is expected, the chunk begins with ", first));
  }
  if (end > entry.limit) {
    return absl::ResourceExhaustedError(absl::StrCat("beyond the credit: session ", session.number, ", member ", member,
                                                     ": credit ends before sequence ", entry.limit,
                                                     ", the chunk before ", end));
  }
  if (tables_->member(member).staged() + (end - next) > tables_->schedule().env_steps) {
    return absl::ResourceExhaustedError(
        absl::StrCat("beyond run.env_steps: member ", member, " has ", tables_->member(member).staged(), " of ",
                     tables_->schedule().env_steps, " rows, the chunk ", end - next, " more"));
  }
  return absl::OkStatus();
}

absl::Status Store::StoreRows(Session* session, const v1::Chunk& chunk) {
  const uint32_t member = chunk.member();
  MemberTable& table = tables_->member(member);
  CreditFile::Entry entry = tables_->sessions().credit(*session, member);
  const auto from = static_cast<uint32_t>(entry.next_sequence - chunk.first_sequence());
  uint32_t to = from;
  do {  // all rows, or with replay.sync those for which there is room
    const uint32_t begin = to;
    to = static_cast<uint32_t>(std::min<uint64_t>(chunk.row_count(), begin + table.room()));
    table.Stage(session->number, chunk.first_sequence() + begin, chunk.columns(), chunk.row_count(), begin, to);
    if (!options_.sync) RETURN_IF_ERROR(table.Commit());
  } while (!options_.sync && to < chunk.row_count());
  DATACOM_FAILPOINT("store.rows");
  entry.next_sequence += to - from;
  tables_->sessions().SetCredit(*session, member, entry);
  DATACOM_FAILPOINT("store.credit");
  session->rows += to - from;
  session->last_row = options_.clock->Now();
  session->last_policy[member] = LastPolicyUpdate(schema_, chunk.columns(), chunk.row_count());
  statistics_.CountInserted(to - from);
  Grant(member);
  return absl::OkStatus();
}

absl::Status Store::Insert(uint32_t session_number, uint64_t stream, const v1::Chunk& chunk, v1::InsertReply* reply) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(commit_.health());
  ASSIGN_OR_RETURN(Session * session, FindStream(session_number, stream));
  if (const absl::Status valid = CheckChunk(*session, chunk); !valid.ok()) {
    Reject(chunk, valid, reply);
    return absl::OkStatus();
  }
  const uint32_t member = chunk.member();
  const uint64_t end = chunk.first_sequence() + chunk.row_count();
  statistics_.CountDuplicates(member, KnownRows(*session, chunk));
  tables_->member(member).SetFault(chunk.fault());
  while (tables_->sessions().credit(*session, member).next_sequence < end) {
    if (const absl::Status stored = StoreRows(session, chunk); !stored.ok()) return commit_.Fail(stored);
    if (tables_->sessions().credit(*session, member).next_sequence == end) break;
    RETURN_IF_ERROR(commit_.CommitGroup(&mutex_));  // frees room; other calls may have run
    ASSIGN_OR_RETURN(session, FindStream(session_number, stream));
  }
  return absl::OkStatus();
}

absl::Status Store::Release(uint32_t session_number, uint64_t stream, const v1::Release& release) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(commit_.health());
  ASSIGN_OR_RETURN(Session * session, FindStream(session_number, stream));
  for (const uint32_t member : tables_->sessions().Release(session, release)) {
    tables_->member(member).mutable_episodes()->Abandon(session_number);
    Grant(member);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Store::Progress(uint32_t session_number, uint64_t stream, InsertProgress* sent,
                                     v1::InsertReply* reply) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(commit_.health());
  ASSIGN_OR_RETURN(Session * session, FindStream(session_number, stream));
  if (!sent->opened) {
    for (auto* values : {&sent->next_sequence, &sent->limit, &sent->served_since}) values->resize(tables_->members());
  }
  bool changed = !sent->opened || sent->revision != session->revision;
  if (sent->revision != session->revision) *reply->mutable_assignment() = session->Assigned();
  sent->revision = session->revision;
  for (uint32_t i = 0; i < tables_->members(); ++i) {
    if (!session->serves(i)) continue;
    const CreditFile::Entry entry = tables_->sessions().durable_credit(*session, i);
    const bool fresh = sent->served_since[i] != session->served_since[i];
    sent->served_since[i] = session->served_since[i];
    if (fresh || entry.next_sequence != sent->next_sequence[i]) {
      changed = true;
      v1::Committed* committed = reply->add_committed();
      committed->set_member(i);
      committed->set_next_sequence(sent->next_sequence[i] = entry.next_sequence);
    }
    if (fresh || entry.limit != sent->limit[i]) {
      changed = true;
      v1::Credit* credit = reply->add_credit();
      credit->set_member(i);
      credit->set_limit(sent->limit[i] = entry.limit);
      credit->set_min_policy_update(session->min_policy_update[i]);
    }
  }
  if (session->waiting_for != sent->waiting_for) {
    reply->set_waiting_for(sent->waiting_for = session->waiting_for);
    changed = true;
  }
  if (tables_->Finished() && !sent->finished) {
    reply->set_finished(sent->finished = true);
    changed = true;
  }
  sent->opened = true;
  return changed;
}

void Store::SetLearnerConnected(bool connected) {
  MutexLock lock(&mutex_);
  draws_.SetLearnerConnected(connected);
}

absl::Status Store::Announce(uint64_t completed_update, uint32_t incarnation) {
  MutexLock lock(&mutex_);
  const uint64_t before = draws_.completed_update();
  RETURN_IF_ERROR(draws_.Announce(completed_update, incarnation));
  if (completed_update != before) GrantAll();
  return absl::OkStatus();
}

absl::Status Store::Finish(uint64_t completed_update, uint32_t incarnation) {
  const uint64_t last = options_.limits.schedule.LastUpdate();
  // A smaller number is not announced: it would take back what the learner that draws has announced.
  if (completed_update >= last) RETURN_IF_ERROR(Announce(completed_update, incarnation));
  if (completed_update < last || !Complete()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the run is not complete at update ", completed_update, " of ", last));
  }
  if (!options_.end_with_run) return absl::OkStatus();
  return WriteFileAtomically(FinishedFile(options_), FinishedText(options_));
}

bool Store::WasFinished() const {
  if (!options_.end_with_run) return false;
  const absl::StatusOr<std::string> text = ReadFile(FinishedFile(options_));
  return text.ok() && *text == FinishedText(options_);
}

bool Store::Ready(uint64_t update) const {
  MutexLock lock(&mutex_);
  return draws_.Ready(update);
}

absl::Status Store::Draw(uint64_t update, v1::DrawReply* reply, DrawPlace* place) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(commit_.health());  // a failed commit may have left rows without their failures and episodes
  return draws_.Draw(update, reply, place);
}

std::string Store::DescribeMissingRows(uint64_t update) const {
  MutexLock lock(&mutex_);
  return replay::DescribeMissingRows(*tables_, update, *options_.clock);
}

absl::Status Store::ReadRange(uint32_t member, uint64_t from, uint64_t to, v1::RowRange* range) const {
  MutexLock lock(&mutex_);
  if (member >= tables_->members()) {
    return absl::InvalidArgumentError(
        absl::StrCat("member ", member, ": the run has ", tables_->members(), " members"));
  }
  std::vector<uint32_t> sessions;
  RETURN_IF_ERROR(tables_->member(member).ReadRange(from, to, range, &sessions));
  range->clear_actors();
  for (const uint32_t session : sessions) (*range->mutable_actors())[session] = tables_->sessions().ActorOf(session);
  return absl::OkStatus();
}

void Store::Info(v1::ReplayInfo* info) const {
  MutexLock lock(&mutex_);
  info->set_run_id(options_.run_id);
  info->set_build(BuildName());
  info->set_task(options_.task);
  info->set_algorithm(options_.algorithm);
  info->set_schema_fingerprint(schema_.fingerprint());
  statistics_.Fill(*tables_, draws_, info);
  for (const auto& [number, session] : tables_->sessions().living()) {
    if (!session.waiting_for.empty()) info->add_waits(absl::StrCat(session.actor, " waits for ", session.waiting_for));
  }
  if (draws_.waiting() > 0) {
    info->add_waits(absl::StrCat("learner waits for rows: ",
                                 replay::DescribeMissingRows(*tables_, draws_.waiting(), *options_.clock)));
  }
  if (!commit_.health().ok()) info->add_waits(std::string(commit_.health().message()));
}

absl::Status Store::Tick() {
  MutexLock lock(&mutex_);
  std::vector<uint32_t> ended;
  FindSilent(draws_, *options_.clock, tables_.get());
  const absl::StatusOr<bool> divided = tables_->sessions().Expire(&ended);
  for (const uint32_t session : ended) spdlog::warn("session ended session={} reason=lease_or_silent", session);
  EndSessions(ended, divided.ok() && *divided);
  UpdateWaits(draws_, *options_.clock, tables_.get());
  statistics_.Tick();
  return commit_.health().ok() ? divided.status() : commit_.health();
}

absl::Status Store::Commit() {
  MutexLock lock(&mutex_);
  return commit_.Commit(&mutex_);
}

bool Store::AwaitStaged() {
  MutexLock lock(&mutex_);
  return commit_.AwaitStaged(&mutex_);
}

void Store::StopCommits() {
  MutexLock lock(&mutex_);
  commit_.Stop();
}

uint64_t Store::GroupInProgress() const {
  MutexLock lock(&mutex_);
  return commit_.in_progress();
}

absl::Status Store::health() const {
  MutexLock lock(&mutex_);
  return commit_.health();
}

bool Store::Complete() const {
  MutexLock lock(&mutex_);
  return tables_->Finished() && draws_.complete();
}

StoreCounters Store::counters() const {
  MutexLock lock(&mutex_);
  return statistics_.Counters(*tables_, draws_);
}

}  // namespace datacom::replay
// SPDX-License-Identifier: Apache-2.0
