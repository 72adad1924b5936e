#include "replay/store.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "common/config/experiment.h"
#include "replay/validate_chunk.h"
#include "spdlog/spdlog.h"

namespace datacom::replay {
namespace {

constexpr double kRateWindowSeconds = 10;

Limiter::Options LimiterOptions(const v1::Experiment& experiment) {
  Limiter::Options options;
  options.schedule.env_steps = experiment.run().env_steps();
  options.schedule.min_size = experiment.replay().min_size();
  options.schedule.updates_per_step = experiment.schedule().updates_per_step();
  options.tolerance = experiment.schedule().tolerance_steps();
  options.max_policy_lag = experiment.schedule().max_policy_lag();
  options.lockstep = experiment.run().lockstep();
  return options;
}

absl::StatusOr<std::unique_ptr<MemberTable>> OpenMember(const RowSchema& schema, const Store::Options& options,
                                                        uint32_t member) {
  const v1::Experiment& experiment = options.experiment;
  MemberTable::Options table;
  table.path = absl::StrCat(options.folder, "/member_", member);
  table.run_id = options.run_id;
  table.member = member;
  table.layout = ReplayLayoutOf(experiment, schema.stored_row_bytes());
  table.layout.guard = options.guard_rows;
  table.batch = experiment.learner().batch_size();
  table.failure_batch = experiment.learner().failure_batch_size();
  table.discount = experiment.learner().discount();
  table.run_seed = experiment.run().seed();
  table.member_seed = experiment.members(static_cast<int>(member)).seed();
  table.episode_rows = options.learns_delta && options.hyper[member].delta_mode() == "learned";
  table.delta_warmup = options.hyper[member].delta_warmup();
  table.sync = experiment.replay().sync();
  return MemberTable::Open(schema, table);
}

// One message carries the samples of all members.
absl::Status CheckDrawSize(const RowSchema& schema, const v1::Experiment& experiment) {
  const uint64_t rows = experiment.learner().batch_size() + experiment.learner().failure_batch_size();
  const uint64_t members = static_cast<uint64_t>(experiment.members_size());
  const uint64_t bytes = members * rows * schema.learning_row_bytes();
  if (bytes <= kMaxDrawBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a draw for ", members, " members of ", rows, " rows (learner.batch_size + learner.failure_batch_size) of ",
      schema.learning_row_bytes(), " bytes has ", bytes, " bytes; at most ", kMaxDrawBytes,
      " fit in a message: lower the batch sizes, or split the members over several runs"));
}

}  // namespace

Store::Store(const RowSchema& schema, const Options& options)
    : schema_(schema),
      options_(options),
      sync_(options.experiment.replay().sync()),
      limiter_(LimiterOptions(options.experiment)),
      started_(options.clock->Now()),
      credit_(limiter_, static_cast<uint32_t>(options.experiment.members_size())),
      rows_rate_(options.clock, kRateWindowSeconds) {}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const RowSchema& schema, const Options& options) {
  if (!options.new_rows) RETURN_IF_ERROR(CheckDrawSize(schema, options.experiment));
  std::unique_ptr<Store> store(new Store(schema, options));
  RETURN_IF_ERROR(MakeFolders(options.folder));
  ASSIGN_OR_RETURN(store->lock_, FolderLock::Take(options.folder));
  MutexLock lock(&store->mutex_);
  RETURN_IF_ERROR(store->Recover());
  return store;
}

absl::Status Store::Recover() {
  const uint32_t members = static_cast<uint32_t>(options_.experiment.members_size());
  const bool known = SessionTable::Exists(options_.folder);
  for (uint32_t member = 0; member < members; ++member) {
    ASSIGN_OR_RETURN(auto table, OpenMember(schema_, options_, member));
    if (known && table->fresh()) {
      return absl::DataLossError(
          absl::StrCat(options_.folder, "/member_", member, ".rows was missing or empty although the run has begun: ",
                       "its rows are lost; restore the file from a copy, or start a new run folder"));
    }
    members_.push_back(std::move(table));
  }
  // A loss of power may keep any name that is not synced: the file of credit must not outlive the rings.
  if (!known) RETURN_IF_ERROR(SyncFile(options_.folder));
  rejected_.assign(members, 0);
  duplicates_.assign(members, 0);
  ASSIGN_OR_RETURN(sessions_,
                   SessionTable::Open({options_.folder, options_.run_id, members, options_.experiment.run().lockstep(),
                                       sync_, options_.lease, options_.clock}));
  if (!known) RETURN_IF_ERROR(SyncFile(options_.folder));
  RETURN_IF_ERROR(CheckSessionNumbers());
  std::vector<uint32_t> living;
  for (auto& [number, session] : sessions_->living()) {
    living.push_back(number);
    for (uint32_t member = 0; member < members; ++member) {
      RETURN_IF_ERROR(RecoverCredit(session, member));
      session.min_policy_update[member] = limiter_.MinPolicyUpdate(members_[member]->inserted(), completed_update_);
    }
  }
  for (auto& table : members_) table->mutable_episodes()->AbandonAllBut(living);
  credit_.CountLanes(*sessions_);
  return CommitStaged();
}

// Rows name the sessions that wrote them. A lost file of sessions would give their numbers to new ones.
absl::Status Store::CheckSessionNumbers() const {
  for (uint32_t member = 0; member < members_.size(); ++member) {
    const MemberTable& table = *members_[member];
    if (table.inserted() == 0 || (!sessions_->empty() && table.LastSession() < sessions_->next_session())) continue;
    return absl::DataLossError(absl::StrCat(options_.folder, "/sessions ",
                                            sessions_->empty() ? "is missing" : "is older than the rows", ": member ",
                                            member, " holds rows of session ", table.LastSession(),
                                            "; restore the file from a copy, or start a new run folder"));
  }
  return absl::OkStatus();
}

// A process that died after the rows and before the credit left the smaller number here. A larger one means that rows
// are lost.
absl::Status Store::RecoverCredit(const Session& session, uint32_t member) {
  CreditFile::Entry entry = sessions_->credit(session, member);
  const MemberTable& table = *members_[member];
  const uint64_t held = table.NextSequence(session.number);
  const bool all_held = table.held() == table.inserted();  // no row was overwritten
  if (entry.next_sequence > held && (held > 0 || all_held)) {
    return absl::DataLossError(
        absl::StrCat(options_.folder, "/member_", member, ".rows is older than the credit: session ", session.number,
                     " has sent rows up to sequence ", entry.next_sequence, ", the ring has them up to ", held,
                     "; restore the run folder from a copy, or start a new one"));
  }
  entry.next_sequence = std::max(entry.next_sequence, held);
  entry.limit = std::max(entry.limit, entry.next_sequence);
  sessions_->SetCredit(session, member, entry);
  return absl::OkStatus();
}

void Store::EndSessions(const std::vector<uint32_t>& ended, bool divided) {
  if (ended.empty() && !divided) return;
  for (const uint32_t session : ended) {
    for (auto& table : members_) table->mutable_episodes()->Abandon(session);
  }
  credit_.CountLanes(*sessions_);
  GrantAll();
}

void Store::Grant(uint32_t member) {
  credit_.Grant(member, members_[member]->staged(), completed_update_, sessions_.get());
  if (sync_) staged_.NotifyAll();
}

void Store::GrantAll() {
  for (uint32_t member = 0; member < members_.size(); ++member) Grant(member);
}

absl::StatusOr<v1::RegisterReply> Store::Register(const std::string& actor, uint64_t incarnation,
                                                  uint32_t environments) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(health_);
  std::vector<uint32_t> ended;
  auto registered = sessions_->Register(actor, incarnation, environments, &ended);
  EndSessions(ended, registered.ok());
  RETURN_IF_ERROR(registered.status());
  const Session& session = **registered;
  v1::RegisterReply reply;
  reply.set_session(session.number);
  reply.set_experiment(options_.experiment_text);
  *reply.mutable_assignment() = session.Assigned();
  reply.set_lease_seconds(Seconds(options_.lease));
  if (!options_.experiment.run().lockstep()) return reply;
  const std::vector<uint32_t> served = session.members();
  RETURN_IF_ERROR(CommitStaged());  // the actor continues after the rows of the process before it
  for (const uint32_t member : served) {
    const EpisodeSummary episode = members_[member]->episodes().OpenOrNext(reply.session(), 0);
    v1::OpenEpisode* open = reply.add_open_episodes();
    open->set_member(member);
    open->set_episode(episode.episode);
    open->set_steps(episode.length);
    if (episode.length == 0) continue;
    open->set_actions(members_[member]->Actions(episode));
    open->set_memory(members_[member]->Memory(episode));
  }
  return reply;
}

absl::StatusOr<uint64_t> Store::Connect(uint32_t session, uint64_t incarnation) {
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Session * found, sessions_->Find(session, incarnation));
  found->stream = next_stream_++;
  for (const uint32_t member : found->members()) Grant(member);
  return found->stream;
}

void Store::Disconnect(uint32_t session, uint64_t stream) {
  MutexLock lock(&mutex_);
  const absl::StatusOr<Session*> found = sessions_->Find(session);
  if (!found.ok() || (*found)->stream != stream) return;
  (*found)->stream = 0;
  (*found)->has_no_credit = false;
  (*found)->last_seen = options_.clock->Now();
}

absl::StatusOr<Session*> Store::FindStream(uint32_t session, uint64_t stream) const {
  ASSIGN_OR_RETURN(Session * found, sessions_->Find(session));
  if (found->stream != stream)
    return absl::AbortedError(absl::StrCat("session ", session, ": another stream took over"));
  return found;
}

absl::Status Store::CheckChunk(const Session& session, const v1::Chunk& chunk) const {
  if (!session.serves(chunk.member()) || chunk.member() >= members_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("member ", chunk.member(), ": session ", session.number,
                                                   " serves members ", absl::StrJoin(session.members(), ", ")));
  }
  const uint32_t environments = options_.experiment.run().lockstep() ? 1 : session.environments;
  return ValidateChunk(schema_, chunk, environments);
}

void Store::Reject(const v1::Chunk& chunk, const absl::Status& why, v1::InsertReply* reply) {
  const uint64_t rows = std::min<uint64_t>(chunk.row_count(), 1 << 20);  // the sender's claim, bounded
  (absl::IsOutOfRange(why)          ? counters_.rejected_gap
   : absl::IsResourceExhausted(why) ? counters_.rejected_credit
                                    : counters_.rejected_invalid) += rows;
  if (chunk.member() < rejected_.size()) rejected_[chunk.member()] += rows;
  v1::Rejection* rejection = reply->add_rejections();
  rejection->set_member(chunk.member());
  rejection->set_first_sequence(chunk.first_sequence());
  rejection->set_code(static_cast<int32_t>(why.code()));
  rejection->set_message(std::string(why.message()));
}

absl::Status Store::DiskFailed(const absl::Status& why) {
  health_ = absl::UnavailableError(
      absl::StrCat("the replay's disk failed; no more rows are accepted: ", std::string(why.message())));
  return health_;
}

absl::Status Store::CheckCredit(const Session& session, const v1::Chunk& chunk) const {
  const uint32_t member = chunk.member();
  const CreditFile::Entry& entry = sessions_->credit(session, member);
  const uint64_t first = chunk.first_sequence(), end = first + chunk.row_count(), next = entry.next_sequence;
  if (first > next) {
    return absl::OutOfRangeError(absl::StrCat("gap: session ", session.number, ", member ", member, ": sequence ", next,
                                              " is expected, the chunk begins with ", first));
  }
  if (end > entry.limit) {
    return absl::ResourceExhaustedError(absl::StrCat("beyond the credit: session ", session.number, ", member ", member,
                                                     ": credit ends before sequence ", entry.limit,
                                                     ", the chunk before ", end));
  }
  if (members_[member]->staged() + (end - next) > limiter_.schedule().env_steps) {
    return absl::ResourceExhaustedError(absl::StrCat("beyond run.env_steps: member ", member, " has ",
                                                     members_[member]->staged(), " of ", limiter_.schedule().env_steps,
                                                     " rows, the chunk ", end - next, " more"));
  }
  return absl::OkStatus();
}

absl::Status Store::StoreRows(Session* session, const v1::Chunk& chunk) {
  const uint32_t member = chunk.member();
  MemberTable* table = members_[member].get();
  CreditFile::Entry entry = sessions_->credit(*session, member);
  const auto from = static_cast<uint32_t>(entry.next_sequence - chunk.first_sequence());
  uint32_t to = chunk.row_count();
  if (sync_) {
    to = static_cast<uint32_t>(std::min<uint64_t>(to, from + table->room()));
    table->Stage(session->number, entry.next_sequence, chunk.columns(), chunk.row_count(), from, to);
  } else {
    RETURN_IF_ERROR(table->Append(session->number, entry.next_sequence, chunk.columns(), chunk.row_count(), from));
  }
  DATACOM_FAILPOINT("store.rows");
  entry.next_sequence += to - from;
  sessions_->SetCredit(*session, member, entry);
  DATACOM_FAILPOINT("store.credit");
  session->rows += to - from;
  session->last_row = options_.clock->Now();
  counters_.inserted += to - from;
  Grant(member);
  return absl::OkStatus();
}

absl::Status Store::Insert(uint32_t session_number, uint64_t stream, const v1::Chunk& chunk, v1::InsertReply* reply) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(health_);
  ASSIGN_OR_RETURN(Session * session, FindStream(session_number, stream));
  if (const absl::Status valid = CheckChunk(*session, chunk); !valid.ok()) {
    Reject(chunk, valid, reply);
    return absl::OkStatus();
  }
  const uint32_t member = chunk.member();
  const uint64_t first = chunk.first_sequence(), end = first + chunk.row_count();
  const uint64_t next = sessions_->credit(*session, member).next_sequence;
  if (end > next) {
    if (const absl::Status fits = CheckCredit(*session, chunk); !fits.ok()) {
      Reject(chunk, fits, reply);
      return absl::OkStatus();
    }
  }
  const uint64_t known = std::min(end, next) - first;
  duplicates_[member] += known;
  counters_.duplicates += known;
  while (sessions_->credit(*session, member).next_sequence < end) {
    if (const absl::Status stored = StoreRows(session, chunk); !stored.ok()) return DiskFailed(stored);
    if (sessions_->credit(*session, member).next_sequence == end) break;
    RETURN_IF_ERROR(CommitGroup());  // makes room; other calls have run meanwhile
    ASSIGN_OR_RETURN(session, FindStream(session_number, stream));
  }
  return absl::OkStatus();
}

absl::Status Store::Release(uint32_t session_number, uint64_t stream, const v1::Release& release) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(health_);
  ASSIGN_OR_RETURN(Session * session, FindStream(session_number, stream));
  for (const uint32_t member : sessions_->Release(session, release)) {
    members_[member]->mutable_episodes()->Abandon(session_number);
    Grant(member);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Store::Progress(uint32_t session_number, uint64_t stream, InsertProgress* sent,
                                     v1::InsertReply* reply) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(health_);
  ASSIGN_OR_RETURN(Session * session, FindStream(session_number, stream));
  if (!sent->opened) {
    for (auto* values : {&sent->next_sequence, &sent->limit, &sent->served_since}) values->resize(members_.size());
  }
  bool changed = !sent->opened || sent->revision != session->revision;
  if (sent->revision != session->revision) *reply->mutable_assignment() = session->Assigned();
  sent->revision = session->revision;
  for (uint32_t i = 0; i < members_.size(); ++i) {
    if (!session->serves(i)) continue;
    const CreditFile::Entry entry = sessions_->durable_credit(*session, i);
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
  if (Finished() && !sent->finished) {
    reply->set_finished(sent->finished = true);
    changed = true;
  }
  sent->opened = true;
  return changed;
}

}  // namespace datacom::replay
