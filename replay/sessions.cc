#include "replay/sessions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/framed_file.h"
#include "common/base/status.h"
#include "common/transitions/replay_layout.h"
#include "replay/episodes.h"

namespace datacom {
namespace {

constexpr char kAdvice[] = "; resume with the build that wrote it, or start a new run folder";
// Version 1 was the payload alone.
constexpr FileFormat kFormat = {"file of sessions", "DCSESSNS", 2, "", "", kAdvice};
constexpr size_t kKeptNames = 4096;  // of actors; their rows are overwritten long before

std::string CreditPath(const std::string& folder) { return folder + "/credit"; }
std::string SessionsPath(const std::string& folder) { return folder + "/sessions"; }

absl::Status Replaced(const std::string& actor) {
  return absl::AlreadyExistsError(absl::StrCat("another process acts as ", actor,
                                               " now; actors that run at the same time need different names (--name)"));
}

}  // namespace

std::string SessionTable::path() const { return SessionsPath(options_.folder); }

bool SessionTable::Exists(const std::string& folder) { return FileExists(CreditPath(folder)); }

absl::StatusOr<std::unique_ptr<SessionTable>> SessionTable::Open(const Options& options) {
  std::unique_ptr<SessionTable> table(new SessionTable(options));
  const auto slots = static_cast<uint32_t>(SessionSlots(options.members));
  const bool has_sessions = FileExists(table->path());
  ASSIGN_OR_RETURN(table->credit_, CreditFile::Open({CreditPath(options.folder), options.run_id, slots, options.members,
                                                     /*must_have_content=*/has_sessions, options.sync}));
  RETURN_IF_ERROR(table->Load());
  return table;
}

absl::StatusOr<v1::ReplaySessions> SessionTable::Read(const std::string& folder) {
  const std::string path = SessionsPath(folder);
  ASSIGN_OR_RETURN(const std::string content, ReadFramedFile(kFormat, path));
  v1::ReplaySessions stored;
  if (stored.ParseFromString(content)) return stored;
  return absl::DataLossError(absl::StrCat("file ", path, ": damaged; start a new run folder"));
}

absl::Status SessionTable::Load() {
  covered_at_ = options_.clock->Now();
  const absl::StatusOr<v1::ReplaySessions> read = Read(options_.folder);
  if (absl::IsNotFound(read.status())) return absl::OkStatus();
  RETURN_IF_ERROR(read.status());
  empty_ = false;
  const v1::ReplaySessions& stored = *read;
  if (stored.run_id() != options_.run_id) {
    return absl::FailedPreconditionError(absl::StrCat("file ", path(), ": belongs to run \"", stored.run_id(),
                                                      "\", not to \"", options_.run_id, "\"; start a new run folder"));
  }
  next_session_ = stored.next_session();
  shard_size_ = stored.shard_size();
  actors_.insert(stored.actors().begin(), stored.actors().end());
  for (const v1::ReplaySession& from : stored.living()) {
    const bool taken = std::any_of(living_.begin(), living_.end(),
                                   [&](const auto& entry) { return entry.second.slot == from.slot(); });
    if (taken || from.slot() >= credit_->slots() || from.session() >= next_session_ || from.member_count() == 0 ||
        uint64_t{from.first_member()} + from.member_count() > options_.members) {
      return absl::DataLossError(
          absl::StrCat("file ", path(), ": session ", from.session(), " is invalid; start a new run folder"));
    }
    Session& session = living_[from.session()];
    session.number = from.session();
    session.actor = from.actor();
    session.incarnation = from.incarnation();
    session.environments = from.environments();
    session.first_member = from.first_member();
    session.member_count = from.member_count();
    session.slot = from.slot();
    session.last_seen = session.last_row = covered_at_;
    session.min_policy_update.resize(session.member_count);
    RETURN_IF_ERROR(credit_->Load(session.slot));
  }
  return absl::OkStatus();
}

absl::Status SessionTable::Save() const {
  v1::ReplaySessions stored;
  stored.set_run_id(options_.run_id);
  stored.set_next_session(next_session_);
  stored.set_shard_size(shard_size_);
  for (const auto& [number, actor] : actors_) (*stored.mutable_actors())[number] = actor;
  for (const auto& [number, session] : living_) {
    v1::ReplaySession* to = stored.add_living();
    to->set_session(number);
    to->set_actor(session.actor);
    to->set_incarnation(session.incarnation);
    to->set_environments(session.environments);
    to->set_first_member(session.first_member);
    to->set_member_count(session.member_count);
    to->set_slot(session.slot);
  }
  return WriteFramedFile(kFormat, path(), stored.SerializeAsString());
}

absl::StatusOr<Session*> SessionTable::Find(uint32_t number) {
  const auto found = living_.find(number);
  if (found != living_.end()) return &found->second;
  if (replaced_.contains(number)) return Replaced(ActorOf(number));
  return absl::NotFoundError(absl::StrCat("session ", number, " ended; register again"));
}

absl::StatusOr<Session*> SessionTable::Find(uint32_t number, uint64_t incarnation) {
  ASSIGN_OR_RETURN(Session * found, Find(number));
  if (found->incarnation != incarnation) return Replaced(found->actor);
  return found;
}

std::string SessionTable::ActorOf(uint32_t number) const {
  const auto found = actors_.find(number);
  return found == actors_.end() ? "" : found->second;
}

std::vector<uint32_t> SessionTable::Coverage() const {
  std::vector<uint32_t> coverage(options_.members);
  for (const auto& [number, session] : living_) {
    for (uint32_t i = 0; i < session.member_count; ++i) ++coverage[session.first_member + i];
  }
  return coverage;
}

absl::Status SessionTable::Assign(Session* session) {
  const uint32_t size = std::min(options_.members, std::max(session->environments, shard_size_));
  if (size == options_.members && !options_.lockstep) {
    session->first_member = 0;
    session->member_count = size;
    return absl::OkStatus();
  }
  const std::vector<uint32_t> coverage = Coverage();
  const auto alone = std::find(coverage.begin(), coverage.end(), 0u);
  if (alone != coverage.end()) {  // the first contiguous members without a session
    const auto end = std::find_if(alone, coverage.end(), [](uint32_t count) { return count != 0; });
    session->first_member = static_cast<uint32_t>(alone - coverage.begin());
    session->member_count = static_cast<uint32_t>(std::min<int64_t>(end - alone, size));
    return absl::OkStatus();
  }
  if (options_.lockstep) {
    return absl::ResourceExhaustedError(absl::StrCat("actor ", session->actor,
                                                     ": lockstep has one environment per member, and all ",
                                                     options_.members, " members already have an actor"));
  }
  // All members are served: join those with the fewest sessions.
  const auto least = std::min_element(coverage.begin(), coverage.end());
  const uint32_t first = static_cast<uint32_t>(least - coverage.begin());
  session->first_member = std::min(first, options_.members - size);
  session->member_count = size;
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> SessionTable::FreeSlot() const {
  std::vector<bool> used(credit_->slots());
  for (const auto& [number, session] : living_) used[session.slot] = true;
  const auto free = std::find(used.begin(), used.end(), false);
  if (free == used.end())
    return absl::ResourceExhaustedError(absl::StrCat(living_.size(), " sessions are live; that is the maximum"));
  return static_cast<uint32_t>(free - used.begin());
}

absl::StatusOr<Session*> SessionTable::Register(const std::string& actor, uint64_t incarnation, uint32_t environments,
                                                std::vector<uint32_t>* ended) {
  if (actor.empty() || actor.size() > 256)
    return absl::InvalidArgumentError("actor: the name must have 1 to 256 bytes");
  if (environments == 0 || environments > kMaxEnvironments) {
    return absl::InvalidArgumentError(
        absl::StrCat("environments of actor ", actor, ": ", environments, " is not in 1 to ", kMaxEnvironments));
  }
  const auto same =
      std::find_if(living_.begin(), living_.end(), [&](const auto& entry) { return entry.second.actor == actor; });
  if (same != living_.end()) {
    Session& session = same->second;
    if (session.incarnation == incarnation) return &session;
    if (options_.lockstep) {  // the new process continues the session
      const uint64_t former = std::exchange(session.incarnation, incarnation);
      const absl::Status saved = Save();
      if (!saved.ok()) {
        session.incarnation = former;
        return saved;
      }
      session.stream = 0;
      session.last_seen = options_.clock->Now();
      return &session;
    }
    ended->push_back(session.number);
    replaced_.insert(session.number);
    living_.erase(same);
    unsaved_ = true;
  }
  Session session;
  session.actor = actor;
  session.incarnation = incarnation;
  session.environments = environments;
  session.last_seen = session.last_row = options_.clock->Now();
  RETURN_IF_ERROR(Assign(&session));
  ASSIGN_OR_RETURN(session.slot, FreeSlot());
  session.min_policy_update.resize(session.member_count);
  session.number = options_.lockstep ? session.first_member + 1 : next_session_;
  next_session_ = std::max(next_session_, session.number + 1);
  credit_->Clear(session.slot);
  // Before Save: a saved session must not inherit another one's credit.
  if (options_.sync) RETURN_IF_ERROR(credit_->Sync(session.slot));
  Session* stored = &(living_[session.number] = session);
  actors_[session.number] = actor;
  while (actors_.size() > kKeptNames + living_.size()) ForgetName();
  const absl::Status saved = Save();
  if (!saved.ok()) {  // a retry must not get a session that is lost in a restart
    living_.erase(session.number);
    actors_.erase(session.number);
    return saved;
  }
  unsaved_ = false;
  empty_ = false;
  return stored;
}

absl::Status SessionTable::Expire(std::vector<uint32_t>* ended) {
  if (options_.lockstep) return absl::OkStatus();
  const Clock::Time now = options_.clock->Now();
  for (const auto& [number, session] : living_) {
    if (!session.connected() && now - session.last_seen > options_.lease) ended->push_back(number);
  }
  for (const uint32_t number : *ended) living_.erase(number);
  const std::vector<uint32_t> coverage = Coverage();
  const bool covered = std::find(coverage.begin(), coverage.end(), 0u) == coverage.end();
  if (covered || living_.empty()) {
    covered_at_ = now;
  } else if (now - covered_at_ > options_.lease) {
    const uint32_t actors = static_cast<uint32_t>(living_.size());
    shard_size_ = (options_.members + actors - 1) / actors;
    for (const auto& [number, session] : living_) ended->push_back(number);
    living_.clear();
    covered_at_ = now;
  }
  unsaved_ = unsaved_ || !ended->empty();
  if (unsaved_) RETURN_IF_ERROR(Save());
  unsaved_ = false;
  return absl::OkStatus();
}

void SessionTable::ForgetName() {
  const auto oldest =
      std::find_if(actors_.begin(), actors_.end(), [&](const auto& entry) { return !living_.contains(entry.first); });
  if (oldest != actors_.end()) {
    replaced_.erase(oldest->first);
    actors_.erase(oldest);
  }
}

uint64_t SessionTable::Outstanding(uint32_t member) const {
  uint64_t rows = 0;
  for (const auto& [number, session] : living_) {
    if (!session.serves(member)) continue;
    const CreditFile::Entry& entry = credit(session, member);
    rows += entry.limit - std::min(entry.limit, entry.next_sequence);
  }
  return rows;
}

}  // namespace datacom
